package console

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"adit/tunnel/wire"
)

const (
	maxExport   = 10_000_000
	liveComment = 15 * time.Second
	liveWrite   = 10 * time.Second // for one event
	maxLive     = 64               // readers at the same time
)

// extend restarts the time limit for the next part of a stream.
func (s *stream) extend() { _ = s.c.SetWriteDeadline(time.Now().Add(liveWrite)) } // not every writer supports deadlines

func (s *stream) flush() { _ = s.c.Flush() }

var accessParameters = []string{
	"endpoint_id", "client_id", "key", "node", "host", "address", "user", "country", "path", "method", "refused", "status", "since", "until",
}

// accessOf parses a question to the access log. more lists parameters that are allowed in
// addition to the common ones.
func accessOf(r *http.Request, limit, maxLimit int, more ...string) (Access, error) {
	v, err := readQuery(r, slices.Concat(accessParameters, more)...)
	if err != nil {
		return Access{}, err
	}
	return Access{
		Endpoint: v.Get("endpoint_id"), ClientID: v.Get("client_id"), Key: v.Get("key"), Node: v.Get("node"), Host: v.Get("host"),
		Address: v.Get("address"), User: v.Get("user"), Country: v.Get("country"), Path: v.Get("path"), Method: v.Get("method"),
		Refused: v.Get("refused"), Cursor: v.Get("cursor"), Limit: v.limit(limit, maxLimit),
		Status: v.status(), Since: v.time("since"), Until: v.time("until"),
	}, v.err
}

func (c *Console) searchAccess(w http.ResponseWriter, r *http.Request) error {
	q, err := accessOf(r, 100, 1000, "limit", "cursor")
	if err != nil {
		return err
	}
	page, err := c.cfg.Relay.Access(r.Context(), q)
	return give(w, page, err)
}

// exportAccess writes all matching events as they are found.
func (c *Console) exportAccess(w http.ResponseWriter, r *http.Request) error {
	q, err := accessOf(r, 0, maxExport, "limit", "format")
	if err != nil {
		return err
	}
	switch r.URL.Query().Get("format") {
	case "", "ndjson":
		out := startStream(w, "application/x-ndjson", "adit-access.ndjson")
		err := c.cfg.Relay.ExportAccess(r.Context(), q, func(e *wire.Access) error {
			text, err := json.Marshal(e)
			if err != nil {
				return err
			}
			return out.line(text)
		})
		return out.end(err)
	case "csv":
		out := startStream(w, "text/csv; charset=utf-8; header=present", "adit-access.csv")
		row := newRow(out)
		begin := func() error { // only once the question is known to be valid, so that a refusal can still be an answer
			if out.started {
				return nil
			}
			return row.write(accessColumns)
		}
		err := c.cfg.Relay.ExportAccess(r.Context(), q, func(e *wire.Access) error {
			if err := begin(); err != nil {
				return err
			}
			return row.write(accessRow(e))
		})
		if err == nil {
			err = begin()
		}
		return out.end(err)
	}
	return &Error{http.StatusBadRequest, "invalid_parameter", "format must be ndjson or csv", "format"}
}

// row writes lines of CSV (RFC 4180).
type row struct {
	buf bytes.Buffer
	csv *csv.Writer
	out *stream
}

func newRow(out *stream) *row {
	r := &row{out: out}
	r.csv = csv.NewWriter(&r.buf)
	r.csv.UseCRLF = true
	return r
}

func (r *row) write(fields []string) error {
	r.buf.Reset()
	if err := r.csv.Write(fields); err != nil {
		return err
	}
	r.csv.Flush()
	return r.out.write(r.buf.Bytes())
}

var accessColumns = []string{
	"time", "node", "endpoint_id", "client_id", "key", "visitor", "country", "method", "host", "path",
	"status", "refused", "bytes_in", "bytes_out", "duration_ms", "id", "user",
}

func accessRow(e *wire.Access) []string {
	status := ""
	if e.Status != 0 {
		status = strconv.Itoa(e.Status)
	}
	fields := []string{
		e.Time.UTC().Format(time.RFC3339Nano), e.Node, e.Endpoint, e.ClientID, e.Key, e.Visitor, e.Country, e.Method, e.Host, e.Path,
		status, e.Refused, strconv.FormatInt(e.BytesIn, 10), strconv.FormatInt(e.BytesOut, 10),
		strconv.FormatFloat(float64(e.Duration.Microseconds())/1000, 'f', 3, 64), e.ID, e.User,
	}
	for i, f := range fields {
		fields[i] = harmless(f)
	}
	return fields
}

// harmless keeps a visitor's text from being a formula when the file is opened in a
// spreadsheet.
func harmless(f string) string {
	if f != "" && strings.ContainsRune("=+-@\t\r", rune(f[0])) {
		return "'" + f
	}
	return f
}

// liveAccess writes events as they come, for as long as the requester may read them.
func (c *Console) liveAccess(w http.ResponseWriter, r *http.Request) error {
	q, err := accessOf(r, 0, 0)
	if err != nil {
		return err
	}
	if c.live.Add(1) > maxLive {
		c.live.Add(-1)
		return &Error{http.StatusTooManyRequests, "too_many_readers", "too many live readers of events are open; close one", ""}
	}
	defer c.live.Add(-1)
	ctx, end := context.WithCancel(r.Context())
	defer end()
	out := startStream(w, "text/event-stream", "")
	var mu sync.Mutex // comments come from another goroutine
	send := func(text string) error {
		mu.Lock()
		defer mu.Unlock()
		// Failed attempts of someone else from the same address do not affect this
		// requester.
		if _, err := c.identify(r); err != nil && !errors.Is(err, errTries) {
			return err
		}
		if err := out.write([]byte(text)); err != nil {
			return err
		}
		out.flush()
		return nil
	}
	done := make(chan struct{})
	var comments sync.WaitGroup
	comments.Go(func() {
		tick := time.NewTicker(liveComment)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if send(": still here\n\n") != nil {
					end()
					return
				}
			case <-done:
				return
			}
		}
	})
	err = c.cfg.Relay.FollowAccess(ctx, q, func(list []wire.Access, missed int) error {
		var b strings.Builder
		if len(list) == 0 && missed == 0 {
			b.WriteString(": begun\n\n")
		}
		if missed > 0 {
			fmt.Fprintf(&b, "event: missed\ndata: {\"count\":%d}\n\n", missed)
		}
		for i := range list {
			text, err := json.Marshal(&list[i])
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "event: access\ndata: %s\n\n", text)
		}
		return send(b.String())
	})
	close(done)
	comments.Wait()
	if out.started {
		return nil
	}
	return err
}
