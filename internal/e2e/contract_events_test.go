package e2e

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// event is one of the stream.
type event struct {
	id         uint64
	kind, data string
}

// follow reads the event stream until it ends, and then closes the channel.
func (c *contractClient) follow(ctx context.Context, last string) <-chan event {
	c.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "GET", c.base+"/api/v1/events", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := (&http.Client{}).Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || !strings.HasPrefix(kind, "text/event-stream") {
		c.t.Fatalf("events: got %d %s", resp.StatusCode, kind)
	}
	c.document.Seen["GET /api/v1/events 200"] = true
	events := make(chan event, 10_000)
	go func() {
		defer close(events)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		var e event
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id, _ = strconv.ParseUint(value, 10, 64)
			case "event":
				e.kind = value
			case "data":
				e.data = value
			case "":
				if e.kind != "" {
					events <- e
				}
				e = event{}
			}
		}
	}()
	return events
}

// tooManyStreams opens event streams until one is refused, and leaves them.
func (c *contractClient) tooManyStreams() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for range 400 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/api/v1/events", nil)
		if err != nil {
			c.t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			c.t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			defer resp.Body.Close()
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			c.t.Fatal(err)
		}
		c.document.Answer(c.t, "/api/v1/events", "GET", resp, body)
		break
	}
	cancel()
	await(c.t, "a stream may be opened again", func() error {
		ctx, cancel := context.WithCancel(c.t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/api/v1/events", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errorf("got %s", resp.Status)
		}
		return nil
	})
}

// resumedEvents goes on after the first event, and from one that never was.
func (c *contractClient) resumedEvents() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	first := <-c.follow(ctx, "")
	if first.kind != "status" {
		c.t.Errorf("a fresh stream begins with %+v, want the status", first)
	}
	resumed := <-c.follow(ctx, strconv.FormatUint(first.id-1, 10))
	if resumed.id != first.id || resumed.kind == "missed" {
		c.t.Errorf("resumed after %d: got %+v", first.id-1, resumed)
	}
	c.document.Event(c.t, resumed.kind, resumed.data)
	lost := <-c.follow(ctx, "99999999999")
	if lost.kind != "missed" {
		c.t.Errorf("resumed after an id that never was: got %+v, want to be told", lost)
	}
	c.document.Event(c.t, lost.kind, lost.data)
	c.ask("400 invalid_parameter", "GET", "/api/v1/events", "", "Last-Event-ID: x")
}

// wholeStream checks all that came, up to the stream's clean end.
func (c *contractClient) wholeStream(events <-chan event) {
	c.t.Helper()
	kinds := map[string]int{}
	var last uint64
	for e := range events {
		if last != 0 && e.id != last+1 {
			c.t.Errorf("event %d follows %d", e.id, last)
		}
		last = e.id
		kinds[e.kind]++
		c.document.Event(c.t, e.kind, e.data)
	}
	for _, kind := range []string{"status", "tunnel", "endpoint", "request", "log"} {
		if kinds[kind] == 0 {
			c.t.Errorf("no event %s came; got %v", kind, kinds)
		}
	}
}
