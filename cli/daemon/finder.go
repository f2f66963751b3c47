// Package daemon connects a command to the daemon of this machine. It finds the right daemon, runs
// one itself if none is running, waits while the daemon is busy, and says what to do if there is
// none to be had. What to ask the daemon is left to the commands.
package daemon

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"adit/internal/buildinfo"
	"adit/internal/config"
	"adit/internal/paths"
	"adit/internal/textfile"
	"adit/localapi/client"
)

// Finder finds the daemon that a command should use.
type Finder struct {
	Getenv func(string) string
	// Inside runs a daemon as a part of the command named runBy until ctx ends, and calls ready
	// once it answers. If nil, commands cannot do that.
	Inside func(ctx context.Context, runBy string, ready func()) error

	found string // the state folder of the daemon that Client found; empty: none said where it is
}

// Client finds the running daemon: the user's own, else the service's, else whatever answers at the
// usual address.
func (f *Finder) Client(ctx context.Context) (*client.Client, error) {
	var hangs error
	for _, at := range f.installations() {
		c, _, err := client.Discover(ctx, at.State, f.options(at)...)
		if err == nil {
			f.found = at.State
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if hangs == nil && errors.Is(err, client.ErrSilent) {
			hangs = err
		}
	}
	if hangs != nil {
		return nil, hangs
	}
	if f.Getenv(paths.EnvState) != "" {
		return nil, client.ErrNotRunning // that folder's daemon is meant, and no other
	}
	return f.usual(ctx, client.DefaultURL)
}

// Moved returns the daemon that Client found if it has come back at an address other than that of
// c; else nil.
func (f *Finder) Moved(ctx context.Context, c *client.Client) *client.Client {
	for _, at := range f.installations() {
		if at.State != f.found {
			continue
		}
		if now, _, err := client.Discover(ctx, at.State, f.options(at)...); err == nil && now.BaseURL() != c.BaseURL() {
			return now
		}
	}
	return nil
}

// usual returns the daemon at the usual address. Nothing proves that whatever answers there is a
// daemon, so no stored token is sent.
func (f *Finder) usual(ctx context.Context, url string) (*client.Client, error) {
	c := client.New(url, f.options()...)
	if _, err := c.Probe(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// installations returns the folders of the daemons that may be running here.
func (f *Finder) installations() []paths.Folders {
	var all []paths.Folders
	if person, err := paths.Person(); err == nil {
		all = append(all, person)
	}
	if f.Getenv(paths.EnvState) == "" {
		service := paths.Service()
		// Most people may not enter the service's state folder; its address is published elsewhere.
		all = append(all, service, paths.Folders{Config: service.Config, State: paths.Public()})
	}
	return all
}

// options returns the client options for the daemon of one of the installations.
func (f *Finder) options(of ...paths.Folders) []client.Option {
	opts := []client.Option{client.WithUserAgent("adit/" + buildinfo.Get().Version)}
	token := f.Getenv("ADIT_BEARER_TOKEN")
	for _, at := range of {
		if token == "" {
			token = configuredBearer(at.Config)
		}
	}
	if token != "" {
		opts = append(opts, client.WithBearer(token))
	}
	return opts
}

// maxToken bounds how much of a token is read.
const maxToken = 4096

// configuredBearer returns the Bearer token that adit.toml in dir sets; empty if there is none, or
// if the user may not read it.
func configuredBearer(dir string) string {
	file, err := config.Load(dir)
	if err != nil {
		return ""
	}
	if file.LocalAPI.BearerTokenFile == "" {
		return file.LocalAPI.BearerToken
	}
	f, err := os.Open(file.LocalAPI.BearerTokenFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return ""
	}
	text, _ := textfile.Of(data) // the daemon has said what is wrong with it
	return strings.TrimSpace(text)
}
