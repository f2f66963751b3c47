package localapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"adit/tunnel/agent"
	"adit/tunnel/agent/feed"
	"adit/tunnel/agent/refusal"
)

// keepAliveEvery is how often a silent stream sends a sign of life.
const keepAliveEvery = 15 * time.Second

// streams counts responses that last until their reader leaves. Each kind has its own maxStreams
// places, so that many streams of one kind do not keep the others out.
type streams struct{ events, holds, visits share }

// share counts the open streams of one kind.
type share struct{ open atomic.Int64 }

// take takes a place, to be given back by release. If all are taken, the error is full with their
// number.
func (s *share) take(full string) error {
	if s.open.Add(1) <= maxStreams {
		return nil
	}
	s.release()
	return &problem{status: http.StatusServiceUnavailable, code: refusal.CodeTooManyStreams, message: fmt.Sprintf(full, maxStreams)}
}

func (s *share) release() { s.open.Add(-1) }

// streamEvents writes the feed as server-sent events (WHATWG HTML, 9.2) until the reader leaves or
// falls behind by eventTimeout, or the daemon ends.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request) error {
	after, err := resumeFrom(r)
	if err != nil {
		return err
	}
	if err := s.streams.events.take("%d event streams are open; close one first"); err != nil {
		return err
	}
	defer s.streams.events.release()
	ctx, out, end, err := openStream(w, r)
	if err != nil {
		return err
	}
	defer end()
	reader := s.cfg.Events(after)
	if err := out.comment("retry: 1000\n\n"); err != nil {
		return nil
	}
	if after == nil {
		first := feed.Event{ID: reader.Last(), Type: agent.EventStatus, Data: utcStatus(s.cfg.Agent.Status())}
		if err := out.event(first); err != nil {
			return nil
		}
	}
	for {
		wait, done := context.WithTimeout(ctx, keepAliveEvery)
		e, err := reader.Next(wait)
		done()
		switch {
		case err == nil:
			err = out.event(e)
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			err = out.comment(stillHere)
		}
		if err != nil { // the reader or the daemon ends: so does the stream
			return nil
		}
	}
}

// stillHere is the comment that keeps a silent stream alive.
const stillHere = ": still here\n\n"

// openStream turns the response to r into one that lasts. ctx ends with the reader or the daemon.
// end must be called when the stream ends.
func openStream(w http.ResponseWriter, r *http.Request) (ctx context.Context, out *eventWriter, end func(), err error) {
	out = &eventWriter{w: w, control: http.NewResponseController(w)}
	// The request has been read; its deadline must not end the response.
	if err := out.control.SetReadDeadline(time.Time{}); err != nil {
		return nil, nil, nil, fmt.Errorf("lift the read deadline of an event stream: %w", err)
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := func() bool { return true }
	if ending, ok := ctx.Value(streamKey{}).(context.Context); ok {
		stop = context.AfterFunc(ending, cancel)
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	return ctx, out, func() {
		stop()
		cancel()
	}, nil
}

// resumeFrom returns the id that the reader saw last, nil if none.
func resumeFrom(r *http.Request) (*uint64, error) {
	name, text := "Last-Event-ID", r.Header.Get("Last-Event-ID")
	if text == "" {
		q, err := readQuery(r, "last_event_id")
		if err != nil {
			return nil, err
		}
		name, text = "last_event_id", q.values.Get("last_event_id")
	}
	if text == "" {
		return nil, nil
	}
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, invalid(name, name+" must be the id of an event, a whole number")
	}
	return &id, nil
}

// eventWriter writes events one by one, each within eventTimeout.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     bytes.Buffer
}

func (o *eventWriter) event(e feed.Event) error {
	data, err := json.Marshal(e.Data)
	if err != nil {
		return fmt.Errorf("write event %d (%s) as JSON: %w", e.ID, e.Type, err)
	}
	o.buf.Reset()
	fmt.Fprintf(&o.buf, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Type, data)
	return o.flush()
}

func (o *eventWriter) comment(text string) error {
	o.buf.Reset()
	o.buf.WriteString(text)
	return o.flush()
}

func (o *eventWriter) flush() error {
	if err := o.control.SetWriteDeadline(time.Now().Add(eventTimeout)); err != nil {
		return err
	}
	if _, err := o.w.Write(o.buf.Bytes()); err != nil {
		return err
	}
	return o.control.Flush()
}
