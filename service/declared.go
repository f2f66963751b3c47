package service

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"adit/internal/config"
	"adit/internal/portrange"
	"adit/localapi"
	"adit/tunnel/agent"
	"adit/tunnel/agent/definition"
)

// declared applies the tunnels of adit.toml to the agent, and keeps what is wrong with the file.
type declared struct {
	daemon   Daemon
	agent    *agent.Agent
	settings *settings
	log      *slog.Logger

	clash    chan struct{} // tells retry that taken is set; room for one
	applying sync.Mutex    // guards file and taken, and is held while they are applied
	file     *config.File  // the last that had no mistake of its own
	taken    string        // the name in it that is another tunnel's; empty for none

	mu      sync.Mutex
	exists  bool
	applied bool // a file without a mistake has been, since the daemon started
	mistake *localapi.ConfigError
}

// run applies file, and then the current file whenever it, or a password file that it names,
// changes. If the file has a mistake, the tunnels stay as they are.
func (c *declared) run(ctx context.Context, file *config.File, watcher *config.Watcher) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.retry(ctx) })
	watcher.Follow(file.PasswordFiles())
	c.apply(ctx, file, nil)
	every := c.daemon.ConfigEvery
	if every == 0 {
		every = configEvery
	}
	return watcher.Run(ctx, every, func() {
		file, err := config.Load(c.daemon.ConfigDir)
		if err == nil {
			watcher.Follow(file.PasswordFiles())
		}
		c.apply(ctx, file, err)
	})
}

// retry applies the file again once a name that belonged to another tunnel is free, until ctx ends.
// It sleeps while there is no such name.
func (c *declared) retry(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.clash:
		}
		for feed := c.agent.Subscribe(nil); !c.resolved(ctx); {
			if _, err := feed.Next(ctx); err != nil {
				return
			}
		}
	}
}

// resolved reports whether no name in the file belongs to another tunnel any more. If one has
// become free, it applies the file first.
func (c *declared) resolved(ctx context.Context) bool {
	c.applying.Lock()
	defer c.applying.Unlock()
	for _, t := range c.agent.Tunnels() {
		if t.Name == c.taken && !t.Declared {
			return false
		}
	}
	if c.taken != "" {
		c.applyLocked(ctx, c.file, nil)
	}
	return c.taken == ""
}

func (c *declared) apply(ctx context.Context, file *config.File, err error) {
	c.applying.Lock()
	defer c.applying.Unlock()
	c.applyLocked(ctx, file, err)
}

func (c *declared) applyLocked(ctx context.Context, file *config.File, err error) {
	c.taken = ""
	if err == nil {
		err = c.declare(ctx, file)
	}
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	c.exists, c.mistake = file == nil || file.Exists(), shownMistake(err)
	before := c.applied
	c.applied = before || err == nil
	c.mu.Unlock()
	switch {
	case err == nil:
		c.log.Debug("configuration applied")
	case before:
		c.log.Error("configuration not applied; the last good one stays in force", "error", err)
	default:
		c.log.Error("declared tunnels do not run until the configuration is mended", "error", err)
	}
}

// shownMistake returns err as the local API shows it; nil for none.
func shownMistake(err error) *localapi.ConfigError {
	var wrong *config.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return &localapi.ConfigError{Message: wrong.Message, Line: wrong.Line, Key: wrong.Key}
	}
	return &localapi.ConfigError{Message: err.Error()}
}

func (c *declared) declare(ctx context.Context, file *config.File) error {
	visits := declaredVisits(file)
	if _, err := definition.CheckVisits(visits); err != nil {
		return visitMistake(file, err)
	}
	specs, tables, err := declaredSpecs(file, config.ReadSecret)
	if err != nil {
		return err
	}
	err = c.agent.Declare(ctx, specs)
	if err == nil {
		return c.agent.DeclareVisits(visits)
	}
	var wrong *definition.DeclareError
	if errors.As(err, &wrong) && wrong.Taken {
		c.file, c.taken = file, specs[wrong.Index].Name
		select {
		case c.clash <- struct{}{}:
		default:
		}
	}
	return declareMistake(file, tables, err)
}

// declaredSpecs returns the tunnels that file declares, and the table of the file that declares
// each: one with ports declares several. Passwords that are in files are read.
func declaredSpecs(file *config.File, read func(path string) (string, error)) (specs []definition.Tunnel, tables []int, err error) {
	for i, t := range file.Tunnels {
		policy, err := t.PolicyDocument(read)
		if err != nil {
			return nil, nil, file.Mistake("tunnel", i, "policy", err.Error())
		}
		of := definition.Tunnel{
			Type: t.Type, Mode: t.Mode, LocalIP: t.LocalIP, LocalPort: t.LocalPort, Domain: t.Domain, Name: t.Name,
			LocalScheme: t.LocalScheme, RemotePort: t.RemotePort, HostHeader: t.HostHeader,
			RequestHeaders: definition.Headers(t.RequestHeaders), ResponseHeaders: definition.Headers(t.ResponseHeaders), Paths: declaredPaths(t.Paths), Visitors: t.Visitors,
			ProxyProtocol: t.ProxyProtocol, Inspect: t.Inspect, Policy: policy,
		}
		if t.Ports == 0 {
			specs, tables = append(specs, of), append(tables, i)
		}
		for n := range t.Ports {
			one := of
			one.LocalPort, one.RemotePort = portrange.Nth(t.LocalPort, n), portrange.Nth(t.RemotePort, n)
			one.Name = portrange.Name(t.Name, one.LocalPort)
			specs, tables = append(specs, one), append(tables, i)
		}
	}
	return specs, tables, nil
}

func declaredPaths(paths []config.Path) []definition.Path {
	var out []definition.Path
	for _, p := range paths {
		out = append(out, definition.Path{
			Path: p.Path, LocalIP: p.LocalIP, LocalPort: p.LocalPort, LocalScheme: p.LocalScheme, HostHeader: p.HostHeader, Strip: p.Strip,
		})
	}
	return out
}

func declaredVisits(file *config.File) []definition.Visit {
	specs := make([]definition.Visit, 0, len(file.Visits))
	for _, v := range file.Visits {
		specs = append(specs, definition.Visit{Tunnel: v.Tunnel, Type: v.Type, Listen: v.Listen})
	}
	return specs
}

// visitMistake returns the agent's complaint about the visits of file, with their place in it.
func visitMistake(file *config.File, err error) error {
	var wrong *definition.DeclareError
	if errors.As(err, &wrong) {
		return file.Mistake("visit", wrong.Index, wrong.Err.Field, strings.TrimPrefix(wrong.Err.Message, wrong.Err.Field+": "))
	}
	return err
}

// declareMistake returns the agent's complaint about the tunnels of file, with their place in it.
func declareMistake(file *config.File, tables []int, err error) error {
	var wrong *definition.DeclareError
	if errors.As(err, &wrong) {
		return file.Mistake("tunnel", tables[wrong.Index], wrong.Err.Field, strings.TrimPrefix(wrong.Err.Message, wrong.Err.Field+": "))
	}
	return err
}

// configuration returns what the local API shows.
func (c *declared) configuration() localapi.Configuration {
	c.mu.Lock()
	mistake, exists := c.mistake, c.exists
	c.mu.Unlock()
	return localapi.Configuration{
		ConfigFile: c.settings.file.Path(), ConfigFileExists: exists,
		StateDir: c.daemon.StateDir, Settings: c.settings.list(c.agent), Error: mistake,
	}
}
