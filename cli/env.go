// Package cli is adit's command line: the tree of its commands, each from a package below, and the
// environment that they are given. Commands that concern the daemon speak to its local API through
// localapi/client and know nothing else about it.
package cli

import (
	"context"
	"io"
	"os"

	"adit/cli/browser"
	"adit/cli/daemon"
	"adit/cli/machine"
	"adit/cli/stdio"
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
	// Daemon runs the daemon until ctx ends, with its local API at httpListen; empty
	// for the configuration's.
	Daemon func(ctx context.Context, httpListen string) error
	// Inside runs it as a part of another command, whose name is runBy, until ctx
	// ends, and calls ready once it answers. Nil: no command does that.
	Inside func(ctx context.Context, runBy string, ready func()) error
}

// System is the Env of this process.
func System() *Env {
	return &Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		Terminal: terminal.Is(os.Stdout), Screen: func() (int, int) { return terminal.SizeOf(os.Stdout) }, OpenBrowser: browser.Open, Daemon: machine.RunDaemon, Inside: daemon.RunInside,
	}
}

// streams are those of a command line in this world.
func (e *Env) streams() *stdio.Streams {
	std := stdio.New(e.In, e.Out, e.Err)
	std.Terminal, std.Screen = e.Terminal, e.Screen
	return std
}

// finder finds the daemon in it.
func (e *Env) finder() *daemon.Finder {
	return &daemon.Finder{Getenv: e.Getenv, Inside: e.Inside}
}
