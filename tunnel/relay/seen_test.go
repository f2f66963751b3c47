package relay

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/store"
)

// TestClientThatMovedIsSeenWhereItIs makes an agent come to another node and leave the
// first, as always when a node shuts down. It then asks the node that no longer has the
// agent.
func TestClientThatMovedIsSeenWhereItIs(t *testing.T) {
	c := startNodes(t, 0)
	var log lockedBuffer
	first := startRelayWith(t, Options{Config: c.config(0), Log: slog.New(slog.NewTextHandler(&log, nil)), usageFlush: time.Hour}) // it is flushed here
	second := startRelayWith(t, Options{Config: c.config(1), usageFlush: 20 * time.Millisecond})
	c.awaitWhole(first, second)
	token := first.client(t, "shop")
	eventually(t, "the other knows the client", func() bool { _, ok := second.store.Clients.Get("shop"); return ok })
	seen := func() store.Seen {
		c, err := first.operator().Client("shop")
		if err != nil {
			t.Fatal(err)
		}
		if c.Seen == nil {
			return store.Seen{}
		}
		return *c.Seen
	}
	a := connect(t, first.at(token), "i1")
	b := connect(t, second.at(token), "i1")
	eventually(t, "the first knows where else it is", func() bool {
		noted, _ := first.store.Activities.Get(a.welcome.ClientID)
		return first.far.SessionsOn()[second.id] == 1 && noted.Seen.Node == "node1"
	})
	a.close()
	eventually(t, "the first has it no more", func() bool { return strings.Contains(log.String(), "agent disconnected") })
	first.notes.Flush(t.Context())
	if s := seen(); !s.Connected || s.Node != "node1" {
		t.Errorf("seen at %s, connected %t; it is connected to node1", s.Node, s.Connected)
	}
	b.close()
	eventually(t, "it is away", func() bool { s := seen(); return !s.Connected && s.Node == "node1" })
}
