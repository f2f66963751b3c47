package forward

import (
	"context"
	"maps"
	"sync"
	"time"
)

// numbers are the numbers by which the relay refers to tunnels on a session.
type numbers struct {
	mu      sync.Mutex
	tunnels map[uint32]*Tunnel
	added   chan struct{} // closed by the next added number; nil while nobody waits
}

// Register assigns number to t.
func (n *numbers) Register(number uint32, t *Tunnel) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tunnels[number] = t
	if n.added != nil {
		close(n.added)
		n.added = nil
	}
}

// Unregister frees number, if it is assigned to t.
func (n *numbers) Unregister(number uint32, t *Tunnel) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tunnels[number] == t {
		delete(n.tunnels, number)
	}
}

// lookup returns the tunnel with the given number and the era of its connections: if the tunnel is
// withdrawn from now on, they are cut afterwards. A visitor may arrive before the grant that
// announced the tunnel, so lookup waits a little.
func (n *numbers) lookup(ctx context.Context, number uint32) (*Tunnel, int) {
	timer := time.NewTimer(3 * time.Second)
	defer timer.Stop()
	for {
		t, era, added := n.find(number)
		if t != nil {
			return t, era
		}
		select {
		case <-ctx.Done():
			return nil, 0
		case <-timer.C:
			return nil, 0
		case <-added:
		}
	}
}

// find is like lookup without waiting. If there is no such tunnel, added is closed when the next
// one is registered.
func (n *numbers) find(number uint32) (t *Tunnel, era int, added <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t = n.tunnels[number]; t != nil {
		return t, t.conns.era(), nil
	}
	if n.added == nil {
		n.added = make(chan struct{})
	}
	return nil, 0, n.added
}

// Forget frees all numbers of t, and reports whether there were any.
func (n *numbers) Forget(t *Tunnel) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := len(n.tunnels)
	maps.DeleteFunc(n.tunnels, func(_ uint32, o *Tunnel) bool { return o == t })
	return len(n.tunnels) < before
}

// Tunnels returns the tunnels that have numbers.
func (n *numbers) Tunnels() map[*Tunnel]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make(map[*Tunnel]bool, len(n.tunnels))
	for _, t := range n.tunnels {
		all[t] = true
	}
	return all
}
