//go:build !windows

package service

import (
	"context"
	"os/signal"
	"syscall"
)

// Main runs the daemon, as a service or in a terminal, until it ends by itself
// or is told to stop. Run calls ready once the daemon answers.
func Main(ctx context.Context, run func(ctx context.Context, ready func()) error) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return run(ctx, func() {})
}
