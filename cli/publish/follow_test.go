package publish

import (
	"encoding/json"
	"io"
	"testing"

	"adit/cli/stdio"
	"adit/localapi/client"
)

// TestOthersTunnelsAreNotFollowed: a short form ends with its own tunnel alone, and shows
// nothing of others'.
func TestOthersTunnelsAreNotFollowed(t *testing.T) {
	own, other := client.Tunnel{ID: "own", Name: "own"}, client.Tunnel{ID: "other", Name: "other"}
	f := &follower{view: &view{std: &stdio.Streams{Out: io.Discard, Err: io.Discard}, tunnel: own}}
	take := func(typ string, v any) {
		t.Helper()
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.take(client.Event{Type: typ, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	take(client.EventTunnel, client.TunnelEvent{Action: "updated", Tunnel: other})
	take(client.EventTunnel, client.TunnelEvent{Action: "deleted", Tunnel: other})
	take(client.EventEndpoint, client.EndpointEvent{Endpoint: client.Endpoint{TunnelID: other.ID}})
	take(client.EventLog, client.LogEntry{Message: notServed, Fields: map[string]any{"tunnel": other.ID}})
	take(client.EventRequest, client.RequestSummary{ID: "1", TunnelID: other.ID})
	if v := f.view; f.gone || v.tunnel.ID != own.ID || v.endpoint.TunnelID != "" || v.trouble != "" || len(v.recent) != 0 {
		t.Errorf("gone %v, and %+v, want nothing of another's", f.gone, v)
	}
	take(client.EventTunnel, client.TunnelEvent{Action: "deleted", Tunnel: own})
	if !f.gone {
		t.Error("the own tunnel was deleted, and is followed")
	}
}
