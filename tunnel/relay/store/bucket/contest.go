package bucket

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// contestTries is how often a value is written that others write at the same time.
const contestTries = 50

// errUnsettled is the end of a write that conflicts with one that nobody sees made.
var errUnsettled = errors.New("the store has taken another write, and has not made it yet")

// Contest is the tries of a write that others may make at the same time. Each begins
// with Next.
type Contest struct {
	Most  int       // tries that see something new; if zero, contestTries
	tries int       // that did
	rev   uint64    // what was seen last
	since time.Time // when it was seen first
}

// Next begins a try that sees the revision rev, 0 for nothing, and says why there is to
// be none. Where the one before saw the same and was in conflict all the same, it waits
// a moment: the bucket's leader has taken another write, or this one, whose answer was
// lost, and waits for other servers to have it, too. It shows what was before until
// then. To give up as in conflict would say that this one is not made.
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
