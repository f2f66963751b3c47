package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"adit/tunnel/relay/audit"
)

// route is a route for the operator.
type route = struct {
	pattern string
	serve   func(http.ResponseWriter, *http.Request) error
}

// operatorRoutes returns the routes for clients' scopes, access events, the audit log,
// sinks, domains and settings.
func (c *Console) operatorRoutes() []route {
	relay := c.cfg.Relay
	return []route{
		{"GET /api/v1/clients/{name}", func(w http.ResponseWriter, r *http.Request) error {
			v, err := relay.Client(r.PathValue("name"))
			return giveTagged(w, v.Tag, v, err)
		}},
		{"PATCH /api/v1/clients/{name}", c.setClient},
		{"GET /api/v1/access", c.searchAccess},
		{"GET /api/v1/access/export", c.exportAccess},
		{"GET /api/v1/access/live", c.liveAccess},
		{"GET /api/v1/audit", c.searchAudit},
		{"GET /api/v1/audit/verify", c.verifyAudit},
		{"GET /api/v1/audit/export", c.exportAudit},
		{"PUT /api/v1/sinks/{name}", func(w http.ResponseWriter, r *http.Request) error {
			var document json.RawMessage
			if err := read(r, &document); err != nil {
				return err
			}
			e, err := ExpectedBy(r)
			if err != nil {
				return err
			}
			v, err := relay.SetSink(r.Context(), r.PathValue("name"), document, e)
			return giveTagged(w, v.Tag, v, err)
		}},
		{"DELETE /api/v1/sinks/{name}", func(w http.ResponseWriter, r *http.Request) error {
			e, err := ExpectedBy(r)
			if err != nil {
				return err
			}
			if err := relay.DeleteSink(r.Context(), r.PathValue("name"), e); err != nil {
				return err
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		}},
		{"POST /api/v1/sinks/{name}/test", func(w http.ResponseWriter, r *http.Request) error {
			v, err := relay.TestSink(r.Context(), r.PathValue("name"))
			return give(w, v, err)
		}},
		{"GET /api/v1/domains", func(w http.ResponseWriter, r *http.Request) error {
			return write(w, http.StatusOK, items{relay.DomainList(r.Context())})
		}},
		{"GET /api/v1/errors", func(w http.ResponseWriter, _ *http.Request) error {
			return write(w, http.StatusOK, items{relay.ErrorList()})
		}},
		{"GET /api/v1/settings", func(w http.ResponseWriter, r *http.Request) error {
			v, err := relay.Settings(r.Context())
			return give(w, v, err)
		}},
	}
}

// give answers with a value, or passes its error on.
func give(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, v)
}

func (c *Console) setClient(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Scope *Scope `json:"scope"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	if q.Scope == nil {
		return &Error{http.StatusBadRequest, "invalid_parameter", "scope is missing", "scope"}
	}
	e, err := ExpectedBy(r)
	if err != nil {
		return err
	}
	v, err := c.cfg.Relay.SetClient(r.Context(), r.PathValue("name"), *q.Scope, e)
	return giveTagged(w, v.Tag, v, err)
}

// searchAudit answers with a page of the audit log.
func (c *Console) searchAudit(w http.ResponseWriter, r *http.Request) error {
	v, err := readQuery(r, "action", "actor", "target", "q", "since", "until", "limit", "before")
	if err != nil {
		return err
	}
	q := AuditQuestion{
		Action: v.Get("action"), Actor: v.Get("actor"), Target: v.Get("target"), Text: strings.TrimSpace(v.Get("q")),
		Since: v.time("since"), Until: v.time("until"), Limit: v.limit(100, 1000),
	}
	if len(q.Text) > maxAuditText {
		v.fail("q", "q has at most %d bytes", maxAuditText)
	}
	if text := v.Get("before"); text != "" {
		if q.Before, err = strconv.ParseUint(text, 10, 63); err != nil || q.Before == 0 {
			v.fail("before", "before must be the number of an entry")
		}
	}
	if v.err != nil {
		return v.err
	}
	page, err := c.cfg.Relay.AuditList(r.Context(), q)
	return give(w, page, err)
}

// verifyAudit checks the chain, and that it contains the head noted earlier, if one is
// given.
func (c *Console) verifyAudit(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "head")
	if err != nil {
		return err
	}
	v, err := c.cfg.Relay.AuditVerify(r.Context(), q.Get("head"))
	return give(w, v, err)
}

func (c *Console) exportAudit(w http.ResponseWriter, r *http.Request) error {
	out := startStream(w, "application/x-ndjson", "adit-audit.ndjson")
	err := c.cfg.Relay.AuditExport(r.Context(), func(e audit.Entry) error {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return out.line(text)
	})
	return out.end(err)
}

// stream is an answer that is written in parts. Each part has its own time limit.
type stream struct {
	w       http.ResponseWriter
	c       *http.ResponseController
	started bool
	begin   func()
}

func startStream(w http.ResponseWriter, media, file string) *stream {
	s := &stream{w: w, c: http.NewResponseController(w)}
	// The request has been read. The rest of the server's time for that must not end an
	// answer that takes longer.
	_ = s.c.SetReadDeadline(time.Time{}) // not every writer supports deadlines
	s.begin = func() {
		s.started = true
		w.Header().Set("Content-Type", media)
		if file != "" {
			w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", file))
		}
		w.WriteHeader(http.StatusOK)
	}
	return s
}

func (s *stream) write(text []byte) error {
	if !s.started {
		s.begin()
	}
	s.extend()
	_, err := s.w.Write(text)
	return err
}

func (s *stream) line(text []byte) error { return s.write(append(text, '\n')) }

// end answers with an error that occurred before the first part. A later error breaks the
// connection, so that half an export is not taken for the whole.
func (s *stream) end(err error) error {
	if !s.started {
		if err == nil {
			s.begin()
		}
		return err
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}
