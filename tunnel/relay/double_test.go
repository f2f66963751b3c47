package relay

import (
	"log/slog"
	"strings"
	"testing"
)

// TestTwoNodesWithOneIDAreSaid makes another relay announce itself under a node's id,
// like one whose data folder is a copy.
func TestTwoNodesWithOneIDAreSaid(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startNodes(t, 1)
	c.all[0].stop() // its entry stays a moment in the next run's way, as after a kill
	const said = "another relay has this node's id"
	var log lockedBuffer
	r := startRelayWith(t, Options{Config: c.config(0), Log: slog.New(slog.NewTextHandler(&log, nil))})
	eventually(t, "the node tells of itself", func() bool {
		own, _ := r.store.Nodes.Get(r.id)
		return own.Boot == r.members.Self().Boot
	})
	r.members.Renew(t.Context())
	if n := strings.Count(log.String(), said); n != 0 {
		t.Errorf("it was said of the node itself:\n%s", log.String())
	}
	other := r.members.Self()
	other.Boot, other.Name = "another", "copy"
	for range 3 {
		if err := r.store.Nodes.Renew(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is said", func() bool { return strings.Count(log.String(), said) > 0 })
		r.members.Renew(t.Context())
	}
	if n := strings.Count(log.String(), said); n != 1 {
		t.Errorf("it was said %d times, want once", n)
	}
}
