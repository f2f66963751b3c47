package relay

import (
	"context"
	"testing"
	"time"

	"adit/tunnel/relay/store"
)

// A relay that ends in the middle of a flush flushes once more.
func TestWhatAgentsReportedSurvivesAFlushThatIsCutOff(t *testing.T) {
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), usageFlush: time.Hour})
	r.client(t, "shop")
	c, _ := r.store.Clients.Get("shop")
	id := c.ID
	at := time.Now().UTC()
	r.seen.mu.Lock()
	f := r.seen.of(id)
	f.seen = store.Seen{At: at, Instance: "i1"}
	f.errors = []store.ClientError{{Time: at, Message: "first", Node: "n"}}
	r.seen.mu.Unlock()
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	r.seen.flush(cut, r.Relay)
	r.seen.mu.Lock()
	f = r.seen.of(id)
	f.errors = append(f.errors, store.ClientError{Time: at.Add(time.Second), Message: "second", Node: "n"})
	r.seen.mu.Unlock()
	for range 2 {
		r.seen.flush(t.Context(), r.Relay)
		// The same again, as after an answer that got lost.
		r.seen.keep(id, &sighting{seen: store.Seen{At: at, Instance: "i1"}, errors: []store.ClientError{{Time: at, Message: "first", Node: "n"}}})
	}
	a, _ := r.store.Activities.Get(id)
	if len(a.Errors) != 2 || a.Errors[0].Message != "first" || a.Errors[1].Message != "second" || a.Seen.Instance != "i1" {
		t.Errorf("got %+v", a)
	}
}
