// Package stdio holds a command's three standard streams and writes results to them, either as one
// JSON document or for a person at a terminal. What a result says is left to the commands.
package stdio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"

	"adit/cli/table"
	"adit/cli/terminal"
	"adit/internal/textfile"
)

// Streams are the standard streams of a command. Use New to create them.
type Streams struct {
	In io.Reader
	// Out remembers write errors.
	Out, Err io.Writer
	// JSON asks for one JSON document instead of text.
	JSON bool
	// Terminal reports whether Out is a screen that a person looks at.
	Terminal bool
	// Screen returns how many columns and rows of Out are visible; zero or a nil Screen means
	// unknown.
	Screen func() (columns, rows int)

	out *output // is Out
}

// New returns the streams of a command.
func New(in io.Reader, out, errs io.Writer) *Streams {
	noting := &output{Writer: out}
	return &Streams{In: in, Out: noting, Err: errs, out: noting}
}

// Failure returns the error that ended a command, or else a write error of its output. It reports
// whether it is the latter.
func (s *Streams) Failure(err error) (error, bool) { return s.out.failure(err) }

// Print writes a command's result: as one JSON document with --json, else as laid out in columns by
// text.
func (s *Streams) Print(v any, text func(w io.Writer)) error {
	if s.JSON {
		out := json.NewEncoder(s.Out)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		return out.Encode(v)
	}
	w := tabwriter.NewWriter(s.Out, 0, 4, 2, ' ', 0)
	text(w)
	return w.Flush()
}

// PrintPage is like Print for the details of one thing: on a screen, descriptions are wrapped
// between words, and continue below where they began.
func (s *Streams) PrintPage(v any, text func(w io.Writer)) error {
	if s.JSON || s.Columns() == 0 {
		return s.Print(v, text)
	}
	var all bytes.Buffer
	w := tabwriter.NewWriter(&all, 0, 4, 2, ' ', 0)
	text(w)
	if err := w.Flush(); err != nil {
		return err
	}
	return s.PrintText(all.String())
}

// PrintTable writes a list: as one JSON document with --json, else as a table, or as none if it is
// empty.
func (s *Streams) PrintTable(v any, t *table.Table, none string) error {
	if s.JSON {
		return s.Print(v, nil)
	}
	if t.Empty() && none != "" {
		return s.PrintText(none + "\n")
	}
	var b strings.Builder
	t.Write(&b, s.Columns())
	_, err := io.WriteString(s.Out, b.String())
	return err
}

// PrintText writes lines, wrapped to the screen. It is not for commands, which people copy.
func (s *Streams) PrintText(text string) error {
	for line := range strings.Lines(text) {
		if _, err := io.WriteString(s.Out, terminal.Break(line, len(named.FindString(line)), s.Columns())); err != nil {
			return err
		}
	}
	return nil
}

// named matches the beginning of a line, up to the description of what it names.
var named = regexp.MustCompile(`^ *(?:-> |\S.*? {2,})?`)

// Say writes one line of text; with --json it writes nothing.
func (s *Streams) Say(format string, args ...any) {
	if !s.JSON {
		fmt.Fprintf(s.Out, format+"\n", args...)
	}
}

// Columns returns the width of the screen that a person looks at; 0 if there is none or it is
// unknown.
func (s *Streams) Columns() int {
	if !s.Terminal {
		return 0
	}
	return s.Size().Columns
}

// Size returns how much of Out is visible now.
func (s *Streams) Size() (size terminal.Size) {
	if s.Screen != nil {
		size.Columns, size.Rows = s.Screen()
	}
	return size
}

// Secret reads a file that contains one secret, or standard input for "-": an argument would be
// visible to everybody who may list the machine's processes.
func (s *Streams) Secret(file string) (string, error) {
	in := s.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("read a secret: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, 64<<10))
	if err != nil {
		return "", fmt.Errorf("read a secret: %w", err)
	}
	text, err := textfile.Of(data)
	if err != nil {
		return "", fmt.Errorf("read the secret in %s: %w", file, err)
	}
	return strings.TrimSpace(text), nil
}
