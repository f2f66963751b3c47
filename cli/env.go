// Package cli is adit's command line: one file a command or a family of them.
// Commands that concern the daemon speak to its local API through
// localapi/client and know nothing else of it.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"adit/internal/buildinfo"
	"adit/internal/paths"
	"adit/localapi/client"
)

// Env is what a command line touches of the world.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Terminal reports whether Out is a screen that a person looks at.
	Terminal bool
	// OpenBrowser shows a page to the person at this machine.
	OpenBrowser func(ctx context.Context, url string) error
	// Daemon runs the daemon until ctx ends.
	Daemon func(ctx context.Context, opts DaemonOptions) error
	// Bearer returns the local API's Bearer token as the configuration file
	// has it; empty if it has none or may not be read. Nil knows none.
	Bearer func() string

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
		Terminal: isTerminal(os.Stdout), OpenBrowser: openBrowser, Daemon: runDaemon,
	}
}

// isTerminal reports whether f is a character device, and so no file or pipe.
func isTerminal(f *os.File) bool {
	stat, err := f.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// usageError is a command line that cannot be understood.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// errQuiet ends a command that has already said what is wrong.
var errQuiet = errors.New("said already")

// client finds the running daemon.
func (e *Env) client(ctx context.Context) (*client.Client, error) {
	opts := []client.Option{client.WithUserAgent("adit/" + buildinfo.Get().Version)}
	token := e.Getenv("ADIT_BEARER_TOKEN")
	if token == "" && e.Bearer != nil {
		token = e.Bearer()
	}
	if token != "" {
		opts = append(opts, client.WithBearer(token))
	}
	for _, dir := range paths.States() {
		c, _, err := client.Discover(ctx, dir, opts...)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, client.ErrNotRunning) && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
	}
	if e.Getenv(paths.EnvState) != "" {
		return nil, client.ErrNotRunning // that folder's daemon is meant, and no other
	}
	c := client.New("", opts...)
	if _, err := c.Health(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// explain turns an error into the sentence that a person reads.
func explain(err error) string {
	var refusal *client.Error
	switch {
	case errors.Is(err, client.ErrNotRunning):
		return "the adit daemon is not running; start it with `adit start`, or as a service with `adit service start`"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.As(err, &refusal):
		next := map[client.ErrorCode]string{
			client.ErrorCodeNotConfigured:    "; run `adit login TOKEN`",
			client.ErrorCodeInvalidToken:     "; copy the whole token again, or ask the relay's operator for a new one",
			client.ErrorCodeUnauthorized:     "; put the token of [local_api] bearer_token into ADIT_BEARER_TOKEN",
			client.ErrorCodeRelayUnreachable: "; `adit doctor` finds out why",
			client.ErrorCodeControlBusy:      "; try again",
		}[refusal.Code]
		return refusal.Message + next
	}
	return err.Error()
}

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

// say writes one line of text; with --json it says nothing.
func (e *Env) say(format string, args ...any) {
	if !e.json {
		fmt.Fprintf(e.Out, format+"\n", args...)
	}
}
