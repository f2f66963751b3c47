package agent

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/link"
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
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
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
