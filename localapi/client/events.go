package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Names of events.
const (
	EventStatus   = "status"   // Status
	EventTunnel   = "tunnel"   // TunnelEvent
	EventEndpoint = "endpoint" // EndpointEvent
	EventRequest  = "request"  // RequestSummary
	EventCleared  = "cleared"  // ClearedEvent: the inspected requests until now are gone
	EventLog      = "log"      // LogEntry
	EventMissed   = "missed"   // MissedEvent: load the lists anew
)

// maxEvent bounds the size of one event.
const maxEvent = 4 << 20

// silence is how long a stream may be silent before it counts as dead; the daemon sends a sign of
// life every 15 s.
const silence = 45 * time.Second

// Event is one entry of the daemon's feed.
type Event struct {
	ID   string
	Type string
	Data json.RawMessage
}

// Into decodes the event's data into v, a pointer to the type that Type names.
func (e Event) Into(v any) error {
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("read the data of event %s (%s): %w", e.ID, e.Type, err)
	}
	return nil
}

// Events follows the daemon's feed from the event after lastID; if lastID is empty, it begins with
// the current status. It reconnects by itself and resumes. Each failed attempt is yielded as an
// error without an event, and the loop may continue. It ends when the loop or ctx does, and after a
// refusal (*Error below 500), which trying again would not change.
func (c *Client) Events(ctx context.Context, lastID string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		waits := backoff{next: firstWait}
		for {
			going := true
			err := c.stream(ctx, lastID, func(e Event) bool {
				waits.next = firstWait
				if e.ID != "" {
					lastID = e.ID
				}
				going = yield(e, nil)
				return going
			})
			if !going || ctx.Err() != nil || !yield(Event{}, err) {
				return
			}
			if refused(err) || !waits.wait(ctx) {
				return
			}
		}
	}
}

// refused reports whether err is a refusal that trying again would not change.
func refused(err error) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Status < 500
}

// Waits between tries.
const (
	firstWait = 250 * time.Millisecond
	lastWait  = 5 * time.Second
)

// backoff waits between tries, longer each time.
type backoff struct{ next time.Duration }

// wait reports whether ctx is still alive after the wait.
func (b *backoff) wait(ctx context.Context) bool {
	timer := time.NewTimer(b.next)
	defer timer.Stop()
	b.next = min(b.next*2, lastWait)
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// stream reads the events of one connection until it ends, and returns why it did.
func (c *Client) stream(ctx context.Context, lastID string, each func(Event) bool) error {
	header := http.Header{"Accept": {"text/event-stream"}}
	if _, err := strconv.ParseUint(lastID, 10, 64); err == nil {
		header.Set("Last-Event-ID", lastID)
	}
	var e Event
	return c.lines(ctx, http.MethodGet, api+"/events", header, func(line string) bool {
		if line == "" {
			if e.Data != nil && !each(e) {
				return false
			}
			e = Event{}
			return true
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			e.ID = value
		case "event":
			e.Type = value
		case "data":
			e.Data = json.RawMessage(value)
		}
		return true
	})
}

// lines reads a long-lived response line by line until it ends, falls silent or each returns false,
// and returns why it ended.
func (c *Client) lines(ctx context.Context, method, path string, header http.Header, each func(string) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	resp, err := c.send(ctx, method, path, nil, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 4096), maxEvent)
	for lines.Scan() {
		watchdog.Reset(silence)
		if !each(lines.Text()) {
			return nil
		}
	}
	err = lines.Err()
	if err == nil {
		err = io.EOF
	}
	return &unreachable{base: c.base, err: fmt.Errorf("the event stream ended: %w", err)}
}
