package publish

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"adit/cli/command"
)

// longest is the maximum for --for: a short form is not meant for anything that should last longer.
const longest = 30 * 24 * time.Hour

// errOver is the reason why a short form ends when its time is over.
var errOver = errors.New("its time is over")

// addFor adds the flag that makes a short form end by itself.
func addFor(flags *pflag.FlagSet, d *time.Duration) {
	flags.DurationVar(d, "for", 0, "stop after this long, such as 30m or 8h")
}

// checkFor refuses invalid values of --for.
func checkFor(flags *pflag.FlagSet, d time.Duration) error {
	if flags.Changed("for") && (d < time.Second || d > longest) {
		return command.Usagef("--for must be 1s to 720h (30 days)")
	}
	return nil
}

// until returns ctx limited until the wall clock reaches ends, or until as much time has passed as
// there was until then, whichever comes first: only the wall clock continues while a machine
// sleeps, but it can be changed. A zero time sets no limit. stop releases its resources.
func until(ctx context.Context, ends time.Time) (lasts context.Context, stop func()) {
	if ends.IsZero() {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	passed := time.Now().Add(time.Until(ends))
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for time.Now().Before(passed) && time.Now().Round(0).Before(ends) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel(errOver)
	}()
	return ctx, func() { cancel(nil) }
}
