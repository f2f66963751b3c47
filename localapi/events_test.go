package localapi

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/internal/logring"
	"adit/tunnel/agent"
	"adit/tunnel/agent/feed"
	"adit/tunnel/agent/inspect"
)

// reader reads an event stream.
type reader struct {
	t     *testing.T
	lines *bufio.Scanner
	body  io.Closer
}

func (r *running) events(t *testing.T, header http.Header, query string) *reader {
	t.Helper()
	// Long enough for a test that reads it only at its end.
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", r.url+"/api/v1/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || !strings.HasPrefix(got, "text/event-stream") {
		t.Fatalf("got status %d of %s, want an event stream", resp.StatusCode, got)
	}
	if got := resp.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("got Cache-Control %q, want no-store", got)
	}
	return &reader{t, bufio.NewScanner(resp.Body), resp.Body}
}

// next returns the next event; ok is false if the stream has ended cleanly.
func (r *reader) next() (id, kind, data string, ok bool) {
	r.t.Helper()
	for r.lines.Scan() {
		name, value, _ := strings.Cut(r.lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			if kind != "" {
				return id, kind, data, true
			}
		}
	}
	if err := r.lines.Err(); err != nil {
		r.t.Fatalf("the stream broke: %v", err)
	}
	return "", "", "", false
}

func (r *reader) want(id, kind string) string {
	r.t.Helper()
	gotID, gotKind, data, ok := r.next()
	if !ok || gotID != id || gotKind != kind {
		r.t.Fatalf("got event %s %s (%t), want %s %s", gotID, gotKind, ok, id, kind)
	}
	return data
}

func TestEventsBeginWithTheStatusAndGoOn(t *testing.T) {
	r := serve(t, nil)
	r.feed.publish("log", logring.Line{Time: fakeTime, Level: "info", Message: "one"})
	r.feed.publish("log", logring.Line{Time: fakeTime, Level: "info", Message: "two"})
	events := r.events(t, nil, "")
	data := events.want("2", "status")
	var st agent.Status
	if err := json.Unmarshal([]byte(data), &st); err != nil || st.State != "connected" {
		t.Errorf("got %s, want the status", data)
	}
	r.feed.publish("log", logring.Line{Time: fakeTime, Level: "info", Message: "three\nlines"})
	if data := events.want("3", "log"); !strings.Contains(data, `three\nlines`) {
		t.Errorf("got %s", data)
	}
}

func TestEventsResumeAfterTheLastID(t *testing.T) {
	r := serve(t, nil)
	for range 5 {
		r.feed.publish("log", logring.Line{Time: fakeTime, Level: "info", Message: "x"})
	}
	for name, events := range map[string]*reader{
		"header":          r.events(t, http.Header{"Last-Event-Id": {"3"}}, ""),
		"query":           r.events(t, nil, "?last_event_id=3"),
		"header over all": r.events(t, http.Header{"Last-Event-Id": {"3"}}, "?last_event_id=1"),
	} {
		t.Run(name, func(t *testing.T) {
			events.t = t
			events.want("4", "log")
			events.want("5", "log")
		})
	}
}

func TestMissedEventsAreToldFirst(t *testing.T) {
	r := serve(t, func(c *Config) {
		f := newFakeFeed()
		f.publish("missed", feed.Missed{Missed: 7})
		c.Events = func(*uint64) Feed { return &fakeReader{feed: f} }
	})
	data := r.events(t, http.Header{"Last-Event-Id": {"1"}}, "").want("1", "missed")
	if data != `{"missed":7}` {
		t.Errorf("got %s, want 7 missed", data)
	}
}

func TestEventStreamsEndCleanlyWithTheDaemon(t *testing.T) {
	r := serve(t, nil)
	events := r.events(t, nil, "")
	events.want("0", "status")
	r.stop()
	if _, kind, _, ok := events.next(); ok {
		t.Errorf("got event %s after the end", kind)
	}
}

func TestEventsFitTheDocument(t *testing.T) {
	d := loadDocument(t)
	f := newFakeAgent()
	for kind, data := range map[string]any{
		agent.EventStatus:   f.Status(),
		agent.EventTunnel:   agent.TunnelEvent{Action: "created", Tunnel: f.tunnels[0]},
		agent.EventEndpoint: agent.EndpointEvent{Action: "up", Endpoint: f.Endpoints()[0]},
		agent.EventRequest:  inspect.Summary{ID: "r_1", Kind: "http", State: "open", Time: fakeTime},
		agent.EventCleared:  agent.ClearedEvent{Requests: 3},
		agent.EventLog:      logring.Line{Time: fakeTime, Level: "warn", Message: "x", Fields: map[string]any{"a": 1}},
		feed.TypeMissed:     feed.Missed{Missed: 3, Restarted: true},
	} {
		b, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		d.Event(t, kind, string(b))
	}
}

func TestEventStreamsAreBounded(t *testing.T) {
	r := serve(t, nil)
	r.streams.events.open.Store(maxStreams)
	resp, err := plainClient.Get(r.url + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "too_many_streams") {
		t.Errorf("got status %d and %s, want 503 too_many_streams with Retry-After", resp.StatusCode, body)
	}
	if got := r.streams.events.open.Load(); got != maxStreams {
		t.Errorf("a refused stream is counted: got %d, want %d", got, maxStreams)
	}
}
