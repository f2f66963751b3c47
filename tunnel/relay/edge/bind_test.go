package edge

import (
	"sync"
	"testing"
	"time"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// TestBandwidthIsOfTheLastPolicy changes a policy while the edge, which was told of an earlier
// change, has read the old policy but not yet applied it.
func TestBandwidthIsOfTheLastPolicy(t *testing.T) {
	slow := policy.New(policy.Document{Bandwidth: 1 << 20}, nil)
	var mu sync.Mutex
	var now *policy.Policy
	var ask func() // once, with the answer in hand
	face := routing.Face{Target: claims.TargetDomain("shop.test"), Slot: claims.SlotPlain, Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: "shop.test"}
	e := New(Config{Policy: func(string) *policy.Policy {
		mu.Lock()
		p, wait := now, ask
		ask = nil
		mu.Unlock()
		if wait != nil {
			wait()
		}
		return p
	}})
	ep, err := e.Attach(face, &routing.Backend{Agent: &routing.Agent{}})
	if err != nil {
		t.Fatal(err)
	}
	read, heeded := make(chan struct{}), make(chan struct{})
	ask = func() {
		close(read)
		select {
		case <-heeded: // the later change, before the one before it
		case <-time.After(200 * time.Millisecond): // or that one waits
		}
	}
	var both sync.WaitGroup
	both.Go(func() { e.Recheck(face.Target) })
	<-read
	mu.Lock()
	now = slow
	mu.Unlock()
	both.Go(func() {
		e.Recheck(face.Target)
		close(heeded)
	})
	both.Wait()
	if !ep.Meter.Bounded() {
		t.Error("the bandwidth of the new policy does not hold")
	}
}
