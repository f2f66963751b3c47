package reliable

import (
	"sync/atomic"
	"testing"
	"time"

	"adit/internal/simnet"
)

// gated is a carrier whose Send waits at a gate, as on a socket that is full.
type gated struct {
	*plain
	gate    atomic.Pointer[chan struct{}]
	waiting atomic.Int64
}

func (g *gated) Send(packets [][]byte) (uint64, error) {
	if gate := g.gate.Load(); gate != nil {
		g.waiting.Add(1)
		<-*gate
	}
	return g.plain.Send(packets)
}

// TestSenderSleepsWhileAnotherSendIsBlocked: what the sender would do has to
// wait for the socket, and waiting takes no processor. It is in real time, since
// a bubble's stands still for who does not wait.
func TestSenderSleepsWhileAnotherSendIsBlocked(t *testing.T) {
	network := simnet.New(1)
	defer network.Close()
	there, back := network.Pair(near)
	network.Join("10.0.0.1", "10.0.0.2", there, back)
	connA, _ := network.Listen("10.0.0.1:1000")
	connB, _ := network.Listen("10.0.0.2:2000")
	carrier := &gated{plain: newPlain(connA, "10.0.0.2:2000")}
	a := New(carrier, Config{Initiator: true, Timeout: time.Minute})
	b := New(newPlain(connB, "10.0.0.1:1000"), Config{Timeout: time.Minute})
	defer b.Close("test over")
	defer a.Close("test over")
	st, in := pair(t, a, b)

	// The writer sends for itself where the path is idle and the sender sleeps.
	gate := make(chan struct{})
	open := func() {
		if carrier.gate.Swap(nil) != nil {
			close(gate)
		}
	}
	defer open() // before the sessions are closed
	idle := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.sleeping && a.inFlight == 0 && a.ackCount == 0
	}
	within(t, "the path is idle", idle)
	carrier.gate.Store(&gate)
	written := make(chan error, 1)
	go func() {
		_, err := st.Write([]byte("more"))
		written <- err
	}()
	within(t, "a Send is blocked", func() bool { return carrier.waiting.Load() == 1 })

	// What comes now asks for an ACK, which cannot go.
	if _, err := in.Write([]byte("and back")); err != nil {
		t.Fatal(err)
	}
	within(t, "an ACK is overdue", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.ackAt > 0 && a.now() > a.ackAt+maxAckDelay
	})
	rounds := func() uint64 {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.rounds
	}
	before := rounds()
	<-time.After(time.Second)
	if got := rounds() - before; got > 300 {
		t.Errorf("in a second the sender got up %d times for nothing", got)
	}

	open()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	within(t, "the ACK goes at once", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.ackAt == 0
	})
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}
