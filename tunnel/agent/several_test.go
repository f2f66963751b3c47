package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/agent/spec"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// silence has attempts at some addresses last until their context ends, as those
// over UDP do where nobody is.
type silence struct {
	mu    sync.Mutex
	at    map[string]bool
	tried map[string]int // attempts that last now
	most  map[string]int // how many others lasted when an address was tried
}

func (s *silence) dial(ctx context.Context, c link.DialConfig) (link.Session, error) {
	s.mu.Lock()
	silent, lasting := s.at[c.Relay], 0
	for _, n := range s.tried {
		lasting += n
	}
	s.most[c.Relay] = max(s.most[c.Relay], lasting)
	if silent {
		s.tried[c.Relay]++
	}
	s.mu.Unlock()
	if !silent {
		return link.Dial(ctx, c)
	}
	<-ctx.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried[c.Relay]--
	return nil, fmt.Errorf("dial relay %s: %w", c.Relay, ctx.Err())
}

func newSilence(addrs ...string) *silence {
	s := &silence{at: map[string]bool{}, tried: map[string]int{}, most: map[string]int{}}
	for _, addr := range addrs {
		s.at[addr] = true
	}
	return s
}

// TestSilentNodesHoldNothingUp has the relay tell of nodes that do not answer,
// before one that does: it is not waited for the end of attempts at them, and
// when the second session is lost a third node has it while they last.
func TestSilentNodesHoldNothingUp(t *testing.T) {
	t.Parallel() // most of it is waiting
	all := newFakeNodes(t, 4)
	first, silent, good := all[0], all[1:3], all[3]
	s := newSilence(silent[0].addr, silent[1].addr)
	a, _ := configured(t, first, Config{Dial: s.dial})
	tun := mustCreate(t, a, spec.Tunnel{LocalPort: 80})
	eventually(t, "the node that answers has the tunnel", func() bool { return good.serves(tun.ID) })
	s.mu.Lock()
	if s.most[good.addr] == 0 {
		t.Error("the node that answers was tried only when attempts at silent ones had ended")
	}
	s.at[silent[1].addr], s.most[silent[1].addr] = false, 0
	s.mu.Unlock()
	good.kill()
	eventually(t, "another node has the tunnel", func() bool { return silent[1].serves(tun.ID) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most[silent[1].addr] == 0 {
		t.Error("it was tried only when the attempt at the node that is silent still had ended")
	}
}

// TestSilentAddressHoldsNothingUp has the token's address be silent when the
// agent starts, and another of the relay answer.
func TestSilentAddressHoldsNothingUp(t *testing.T) {
	t.Parallel() // most of it is waiting
	all := newFakeNodes(t, 2)
	dir := t.TempDir()
	for _, r := range all {
		r.set(func() { r.addresses = []string{all[0].addr, all[1].addr} })
	}
	a, stop := startAgent(t, Config{StateDir: dir})
	if _, err := a.Configure(t.Context(), all[0].token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	wantState(t, a, StateConnected)
	stop()
	s := newSilence(all[0].addr)
	a, stop = startAgent(t, Config{StateDir: dir, Dial: s.dial})
	defer stop()
	wantState(t, a, StateConnected)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most[all[1].addr] == 0 {
		t.Error("the address that answers was tried only when the attempt at the silent one had ended")
	}
}

// TestSeveralAddressesFail looks at what is said and when, if nobody answers.
func TestSeveralAddressesFail(t *testing.T) {
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
		"all are silent":               {[]error{nil, nil}, context.DeadlineExceeded, 0, 2, secondTime},
		"the relay's word counts more": {[]error{away, nil, refused(wire.CodeUnavailable)}, &wire.Problem{}, 2, 3, secondTime},
		"a refused token ends it":      {[]error{refused(wire.CodeUnauthorized), away}, &wire.Problem{}, 0, 1, 0},
		"but not what is under way":    {[]error{nil, refused(wire.CodeUnauthorized), away}, &wire.Problem{}, 1, 2, secondTime},
		"here already is no news":      {[]error{refused(wire.CodeHere), away}, &wire.Problem{}, 0, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var addrs []string
				for i := range c.errs {
					addrs = append(addrs, fmt.Sprintf("node%d:1", i))
				}
				tries := make(chan string, 10)
				a := &Agent{cfg: Config{Dial: func(ctx context.Context, d link.DialConfig) (link.Session, error) {
					tries <- d.Relay
					if err := c.errs[slices.Index(addrs, d.Relay)]; err != nil {
						return nil, err
					}
					<-ctx.Done()
					return nil, ctx.Err()
				}}}
				ctx, cancel := context.WithTimeout(t.Context(), secondTime)
				defer cancel()
				start := time.Now()
				l, addr, err := a.connectAny(ctx, addrs, joining{})
				took := time.Since(start)
				var p *wire.Problem
				if _, problem := c.want.(*wire.Problem); l != nil || addr != addrs[c.addr] || problem != errors.As(err, &p) || !problem && !errors.Is(err, c.want) {
					t.Errorf("got %v of %s, want %v of %s", err, addr, c.want, addrs[c.addr])
				}
				if len(tries) != c.tries || took != c.took {
					t.Errorf("%d addresses were tried in %v, want %d in %v", len(tries), took, c.tries, c.took)
				}
			})
		})
	}
}
