package relay

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"adit/tunnel/relay/store/events"
	"adit/tunnel/wire"
)

// searched are the newest events that match, newest first.
func searched(r *Relay, match func(*wire.Access) bool, limit int) []wire.Access {
	r.access.Flush()
	found := []wire.Access{}
	_, _, err := r.store.Events.Walk(context.Background(), events.Scan{}, func(e *wire.Access) bool {
		if match(e) {
			found = append(found, *e)
		}
		return len(found) < limit
	})
	if err != nil {
		panic(err)
	}
	return found
}

func TestAccessEvents(t *testing.T) {
	cfg := testConfig(t.TempDir())
	s := startSite(t, cfg, text("hello"))
	u, _ := url.Parse(s.https)
	resp, err := s.visitor.Post(s.https+"/path?secret=1", "", strings.NewReader("12345"))
	if err != nil {
		t.Fatal(err)
	}
	io.ReadAll(resp.Body)
	resp.Body.Close()
	e := s.agent.event(wire.EventAccess).Access
	if e == nil || e.Key != "https" || e.Method != "POST" || e.Host != u.Hostname() || e.Path != "/path" || e.Status != 200 ||
		e.BytesIn != 5 || e.BytesOut != 5 || e.Visitor != "127.0.0.1" || e.Duration <= 0 {
		t.Errorf("got %+v", e)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	again := startRelay(t, cfg)
	if list := searched(again.Relay, func(e *wire.Access) bool { return e.Path == "/path" }, 10); len(list) != 1 || list[0].Key != "https" {
		t.Errorf("after a restart: %+v", list)
	}
}

func TestAgentThatWantsNoAccessEventsGetsNone(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("hello"))
	s.agent.event(wire.EventPing) // its own events have begun
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://relay"+wire.PathEvents+"?"+wire.ParamAccess+"="+wire.AccessNone, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.agent.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || !strings.Contains(line, wire.EventPing) {
		t.Fatalf("got %q, %v; want a ping", line, err)
	}
	for _, session := range s.roster.All() {
		if !session.unobserved.Load() {
			t.Error("the agent's wish was not noted")
		}
	}
	one := &session{access: make(chan *wire.Event, 2)}
	one.visited(wire.Access{Path: "/wanted"})
	one.unobserved.Store(true)
	one.visited(wire.Access{Path: "/unwanted"})
	if len(one.access) != 1 {
		t.Errorf("got %d events, want the one before the wish", len(one.access))
	}
	if status, _ := get(t, s.visitor, s.http+"/kept"); status != 200 {
		t.Errorf("got status %d", status)
	}
	eventually(t, "the event is stored all the same", func() bool {
		return len(searched(s.Relay, func(e *wire.Access) bool { return e.Path == "/kept" }, 10)) == 1
	})
}

func TestWithoutAccessLogVisitorsAreOnlyCounted(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.AccessLog = false
	s := startSite(t, cfg, text("hello"))
	if status, _ := get(t, s.visitor, s.http); status != 200 {
		t.Fatalf("got status %d", status)
	}
	eventually(t, "the request is counted", func() bool {
		return figure(s.operator().Metrics(), `adit_relay_visits_total{type="http",outcome="2xx"}`) == 1
	})
	if list := searched(s.Relay, func(*wire.Access) bool { return true }, 10); len(list) > 0 {
		t.Errorf("got the events %+v", list)
	}
}
