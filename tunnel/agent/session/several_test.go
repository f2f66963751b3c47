package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// TestSeveralAddressesFail looks at what is said and when, if nobody answers.
func TestSeveralAddressesFail(t *testing.T) {
	const limit = 6 * time.Second // of the attempt as a whole
	away := errors.New("nobody there")
	refused := func(code string) error { return fmt.Errorf("hello: %w", &wire.Problem{Code: code, Message: code}) }
	for name, c := range map[string]struct {
		errs  []error // by address; nil: silent
		want  error   // of the address
		addr  int
		tries int
		took  time.Duration
	}{
		"all refuse at once":           {[]error{away, away, away}, away, 0, 3, 0},
		"all are silent":               {[]error{nil, nil}, context.DeadlineExceeded, 0, 2, limit},
		"the relay's word counts more": {[]error{away, nil, refused(wire.CodeUnavailable)}, &wire.Problem{}, 2, 3, limit},
		"a refused token ends it":      {[]error{refused(wire.CodeUnauthorized), away}, &wire.Problem{}, 0, 1, 0},
		"but not what is under way":    {[]error{nil, refused(wire.CodeUnauthorized), away}, &wire.Problem{}, 1, 2, limit},
		"here already is no news":      {[]error{refused(wire.CodeHere), away}, &wire.Problem{}, 0, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var addrs []string
				for i := range c.errs {
					addrs = append(addrs, fmt.Sprintf("node%d:1", i))
				}
				tries := make(chan string, 10)
				d := &Dialer{Dial: func(ctx context.Context, d link.DialConfig) (link.Session, error) {
					tries <- d.Relay
					if err := c.errs[slices.Index(addrs, d.Relay)]; err != nil {
						return nil, err
					}
					<-ctx.Done()
					return nil, ctx.Err()
				}}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				start := time.Now()
				s, addr, err := d.ConnectAny(ctx, addrs, Joining{})
				took := time.Since(start)
				var p *wire.Problem
				if _, problem := c.want.(*wire.Problem); s != nil || addr != addrs[c.addr] || problem != errors.As(err, &p) || !problem && !errors.Is(err, c.want) {
					t.Errorf("got %v of %s, want %v of %s", err, addr, c.want, addrs[c.addr])
				}
				if len(tries) != c.tries || took != c.took {
					t.Errorf("%d addresses were tried in %v, want %d in %v", len(tries), took, c.tries, c.took)
				}
			})
		})
	}
}
