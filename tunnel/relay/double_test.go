package relay

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// heardLines is what a relay logs.
type heardLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *heardLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *heardLines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

// TestTwoNodesWithOneIDAreSaid has another relay tell of itself under a node's
// id, as one does whose data folder is a copy.
func TestTwoNodesWithOneIDAreSaid(t *testing.T) {
	c := startNodes(t, 1)
	c.all[0].stop() // its entry stays a moment in the next run's way, as after a kill
	var log heardLines
	r := startRelayWith(t, Options{Config: c.config(0), Log: slog.New(slog.NewTextHandler(&log, nil))})
	eventually(t, "the node tells of itself", func() bool { return r.members.listed.Load() })
	r.members.renewNow(t.Context())
	if n := log.count("another relay has this node's id"); n != 0 {
		t.Errorf("it was said of the node itself:\n%s", log.text.String())
	}
	other := r.members.now()
	other.Boot, other.Name = "another", "copy"
	for range 3 {
		if err := r.store.Nodes.Renew(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is said", func() bool { return log.count("another relay has this node's id") > 0 })
		r.members.renewNow(t.Context())
	}
	if n := log.count("another relay has this node's id"); n != 1 {
		t.Errorf("it was said %d times, want once", n)
	}
}
