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

// Env is everything outside the program that a command line uses.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Terminal reports whether Out is a screen that a person looks at.
	Terminal bool
	// Screen returns how many columns and rows of Out are visible; zero or a nil Screen means
	// unknown.
	Screen func() (columns, rows int)
	// OpenBrowser opens a page for the user at this machine.
	OpenBrowser func(ctx context.Context, url string) error
	// Daemon runs the daemon until ctx ends, with its local API at httpListen; if empty, at the
	// configured address.
	Daemon func(ctx context.Context, httpListen string) error
	// Inside runs it as a part of the command named runBy until ctx ends, and calls ready once it
	// answers. If nil, commands cannot do that.
	Inside func(ctx context.Context, runBy string, ready func()) error
}

// System returns the Env of this process.
func System() *Env {
	return &Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		Terminal: terminal.Is(os.Stdout), Screen: func() (int, int) { return terminal.SizeOf(os.Stdout) }, OpenBrowser: browser.Open, Daemon: machine.RunDaemon, Inside: daemon.RunInside,
	}
}

// streams returns the streams of a command line in e.
func (e *Env) streams() *stdio.Streams {
	std := stdio.New(e.In, e.Out, e.Err)
	std.Terminal, std.Screen = e.Terminal, e.Screen
	return std
}

// finder returns a Finder for the daemon in e.
func (e *Env) finder() *daemon.Finder {
	return &daemon.Finder{Getenv: e.Getenv, Inside: e.Inside}
}
