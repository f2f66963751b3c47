package service

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"adit/frontend"
	"adit/internal/buildinfo"
	"adit/internal/discovery"
	"adit/internal/logring"
	"adit/localapi"
	"adit/tunnel/agent"
)

// Daemon is the composition of the daemon.
type Daemon struct {
	HTTPListen          string
	ConfigDir, StateDir string
	AuthToken           string
	Log                 *slog.Logger
}

// Run runs the daemon until ctx ends.
func (d Daemon) Run(ctx context.Context) error {
	listen := d.HTTPListen
	if listen == "" {
		listen = localapi.DefaultListen
	}
	var next slog.Handler
	if d.Log != nil {
		next = d.Log.Handler()
	}
	ring := logring.New(2000, slog.LevelDebug, next)
	log := slog.New(ring.Handler())
	a, err := agent.New(agent.Config{StateDir: d.StateDir, Logger: log, Version: buildinfo.Get().Version, AuthToken: d.AuthToken})
	if err != nil {
		return err
	}
	defer a.Close()
	ring.Follow(func(l logring.Line) { a.Publish(agent.EventLog, l) })
	server, err := localapi.New(localapi.Config{
		Agent: a, Events: func(after *uint64) localapi.Feed { return a.Subscribe(after) },
		Logs: ring.Lines, Logger: log, Frontend: frontend.AgentUI(), Version: buildinfo.Get().Version,
	})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", listen, err)
	}
	info := discovery.New(ln.Addr(), time.Now())
	if err := discovery.Write(d.StateDir, info); err != nil {
		ln.Close()
		return err
	}
	defer discovery.Remove(d.StateDir, info)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.Run(ctx) })
	group.Go(func() error { return server.Serve(ctx, ln) })
	return group.Wait()
}

var _ = os.Getpid
