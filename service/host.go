package service

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"time"

	"adit/internal/discovery"
)

// Host runs d as this process's daemon, under a service manager or in a terminal, until it ends or
// is told to stop.
func Host(ctx context.Context, d Daemon) error {
	return Main(ctx, func(ctx context.Context, ready func()) error {
		d, told := d, d.Ready
		d.Ready = func(addr net.Addr) {
			if told != nil {
				told(addr)
			}
			ready()
		}
		return host(ctx, d)
	})
}

func host(ctx context.Context, d Daemon) error {
	dir := os.Getenv(EnvRun)
	if dir == "" {
		return logged(d)(ctx)
	}
	var info discovery.Info
	ready := d.Ready
	d.Ready = func(addr net.Addr) {
		// The state folder of a service is closed to most people, but they must still be able to
		// find the daemon.
		info = discovery.New(addr, time.Now())
		if err := discovery.Write(dir, info); err != nil {
			log := d.Log
			if log == nil {
				log = slog.Default()
			}
			log.Warn("people at this machine will look for the daemon at its default address", "error", err)
		}
		ready(addr)
	}
	err := logged(d)(ctx)
	if removeErr := discovery.Remove(dir, info); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
		err = errors.Join(err, removeErr)
	}
	return err
}
