package publish

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"adit/cli/command"
)

// longest is the most that --for takes: what shall stay for longer is no short form's.
const longest = 30 * 24 * time.Hour

// errOver is why a short form ends whose time is over.
var errOver = errors.New("its time is over")

// addFor adds the flag that ends a short form by itself.
func addFor(flags *pflag.FlagSet, d *time.Duration) {
	flags.DurationVar(d, "for", 0, "stop after this long, such as 30m or 8h")
}

// checkFor refuses what --for cannot be.
func checkFor(flags *pflag.FlagSet, d time.Duration) error {
	if flags.Changed("for") && (d < time.Second || d > longest) {
		return command.Usagef("--for must be 1s to 720h (30 days)")
	}
	return nil
}

// until is ctx until the clock of the wall says ends, or so much time has passed as it
// was until then, whatever comes first: while a machine sleeps only the wall's goes on,
// and that one can be set. A zero time is no end. stop frees what it holds.
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
