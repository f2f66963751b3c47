// Package cli is adit's command line: one file a command or a family of them.
// Commands that concern the daemon speak to its local API through
// localapi/client and know nothing else of it.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"

	"adit/cli/table"
	"adit/cli/terminal"
)

// Env is what a command line touches of the world.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Terminal reports whether Out is a screen that a person looks at.
	Terminal bool
	// Screen tells how many columns and rows of Out that person sees; zero or nil
	// is not known.
	Screen func() (columns, rows int)
	// OpenBrowser shows a page to the person at this machine.
	OpenBrowser func(ctx context.Context, url string) error
	// Daemon runs the daemon until ctx ends.
	Daemon func(ctx context.Context, opts DaemonOptions) error
	// Inside runs it as a part of another command, whose name is runBy, until ctx
	// ends, and calls ready once it answers. Nil: no command does that.
	Inside func(ctx context.Context, runBy string, ready func()) error

	json bool // --json
	ran  bool // a command has begun: its errors are no usage errors
}

// DaemonOptions are the parameters of adit start.
type DaemonOptions struct {
	// HTTPListen is where the local API listens; empty for the configuration's.
	HTTPListen string
}

// System is the Env of this process.
func System() *Env {
	return &Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		Terminal: terminal.Is(os.Stdout), Screen: func() (int, int) { return terminal.SizeOf(os.Stdout) }, OpenBrowser: openBrowser, Daemon: runDaemon, Inside: insideDaemon,
	}
}

// errQuiet ends a command that has already said what is wrong.
var errQuiet = errors.New("said already")

// print writes a command's result: as one JSON document with --json, else as
// text lays it out in columns.
func (e *Env) print(v any, text func(w io.Writer)) error {
	if e.json {
		out := json.NewEncoder(e.Out)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(v)
	}
	w := tabwriter.NewWriter(e.Out, 0, 4, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// printPage is print for what is written of one thing: on a screen what is said of
// it is broken between words, and goes on below where it began.
func (e *Env) printPage(v any, text func(w io.Writer)) error {
	if e.json || e.columns() == 0 {
		return e.print(v, text)
	}
	var all bytes.Buffer
	w := tabwriter.NewWriter(&all, 0, 4, 2, ' ', 0)
	text(w)
	if err := w.Flush(); err != nil {
		return err
	}
	return e.write(all.String())
}

// write writes lines, broken where a screen ends. It is not for commands, which
// are to be copied.
func (e *Env) write(text string) error {
	for line := range strings.Lines(text) {
		if _, err := io.WriteString(e.Out, terminal.Break(line, len(named.FindString(line)), e.columns())); err != nil {
			return err
		}
	}
	return nil
}

// named is the beginning of a line up to what is said of what it names.
var named = regexp.MustCompile(`^ *(?:-> |\S.*? {2,})?`)

// say writes one line of text; with --json it says nothing.
func (e *Env) say(format string, args ...any) {
	if !e.json {
		fmt.Fprintf(e.Out, format+"\n", args...)
	}
}

// printTable writes a list: as one JSON document with --json, else as a table, or
// what is said instead of an empty one.
func (e *Env) printTable(v any, t *table.Table, none string) error {
	if e.json {
		return e.print(v, nil)
	}
	if t.Empty() && none != "" {
		return e.write(none + "\n")
	}
	var b strings.Builder
	t.Write(&b, e.columns())
	_, err := io.WriteString(e.Out, b.String())
	return err
}

// columns is how wide the screen is that a person looks at; 0 where nobody does
// or it is not known.
func (e *Env) columns() int {
	if !e.Terminal {
		return 0
	}
	return e.screen().Columns
}

// screen asks how much of e.Out is seen now.
func (e *Env) screen() (s terminal.Size) {
	if e.Screen != nil {
		s.Columns, s.Rows = e.Screen()
	}
	return s
}
