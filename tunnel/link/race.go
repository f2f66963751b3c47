package link

import (
	"context"
	"errors"
	"time"
)

// maxAddresses is how many addresses of a name are tried.
const maxAddresses = 8

// attemptDelay is how long an attempt runs before the next address is tried alongside it (RFC 8305
// §5).
const attemptDelay = 250 * time.Millisecond

// attempt is one way to make a session.
type attempt struct {
	after time.Duration // after the attempt before it was begun
	dial  func(context.Context) (Session, error)
}

// race runs the attempts and returns the first session; the others are abandoned. Each attempt
// starts when the one before it has failed or its delay is over. race waits for all that it
// started. If all fail, the error includes unsure, unless nil.
func race(ctx context.Context, attempts []attempt, unsure error) (Session, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		session Session
		err     error
	}
	results := make(chan result, len(attempts))
	timer := time.NewTimer(0)
	defer timer.Stop()
	var errs []error
	next, running := 0, 0
	for next < len(attempts) || running > 0 {
		select {
		case <-timer.C:
			if next == len(attempts) {
				continue
			}
			dial := attempts[next].dial
			next++
			running++
			go func() {
				session, err := dial(ctx)
				results <- result{session, err}
			}()
			if next < len(attempts) {
				timer.Reset(attempts[next].after)
			}
		case r := <-results:
			running--
			if r.err != nil {
				errs = append(errs, r.err)
				timer.Reset(0)
				continue
			}
			cancel()
			for ; running > 0; running-- {
				if late := <-results; late.session != nil {
					late.session.Close("another attempt was faster")
				}
			}
			return r.session, nil
		}
	}
	return nil, errors.Join(append(errs, unsure)...)
}
