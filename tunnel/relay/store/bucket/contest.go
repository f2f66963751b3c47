package bucket

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// contestTries is how often a write that conflicts with others is attempted.
const contestTries = 50

// errUnsettled ends a write that conflicts with another write that does not become visible.
var errUnsettled = errors.New("the store has taken another write, and has not made it yet")

// Contest counts the attempts of a write that others may be making at the same time. Each
// attempt begins with Next.
type Contest struct {
	Most  int       // attempts that see something new; if zero, contestTries
	tries int       // attempts that did
	rev   uint64    // the revision seen last
	since time.Time // when it was first seen
}

// Next begins an attempt that sees the revision rev, or 0 for nothing. Its error says why
// there must be no further attempt. If the previous attempt saw the same revision and still
// met a conflict, Next pauses. The bucket's leader has then accepted another write, or this
// one with its answer lost, and waits for other servers to have it, too; until then it shows
// the previous value. To give up with a conflict would claim that this write was not made.
func (c *Contest) Next(ctx context.Context, rev uint64) error {
	switch {
	case c.tries == 0 || rev != c.rev:
		if c.tries++; c.tries > cmp.Or(c.Most, contestTries) {
			return ErrConflict
		}
		c.rev, c.since = rev, time.Now()
	case time.Since(c.since) > retryFor:
		return errUnsettled
	case !Rested(ctx):
		return ctx.Err()
	}
	return nil
}
