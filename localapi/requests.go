package localapi

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"adit/tunnel/agent/inspect"
)

const (
	defaultLimit = 200
	maxLimit     = 10000
)

// query reads a query string and remembers its first mistake.
type query struct {
	values url.Values
	err    error
}

// readQuery refuses parameters that are not in known, or that come twice.
func readQuery(r *http.Request, known ...string) (*query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("", "the query string is malformed")
	}
	for name, all := range values {
		if !slices.Contains(known, name) {
			if len(known) == 0 {
				return nil, invalid(name, strconv.Quote(name)+" is not a parameter here; there are none")
			}
			return nil, invalid(name, strconv.Quote(name)+" is not a parameter here; there are "+strings.Join(known, ", "))
		}
		if len(all) > 1 {
			return nil, invalid(name, name+" is given twice")
		}
	}
	return &query{values: values}, nil
}

func (q *query) fail(field, message string) {
	if q.err == nil {
		q.err = invalid(field, message)
	}
}

func (q *query) text(name string, longest int) string {
	v := q.values.Get(name)
	if len(v) > longest {
		q.fail(name, name+" is too long")
		return ""
	}
	return v
}

func (q *query) time(name string) time.Time {
	v := q.values.Get(name)
	if v == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		q.fail(name, name+" must be a time such as 2026-05-04T10:20:30Z")
	}
	return t
}

// requestID reads the id of an inspected request, which may no longer be held.
func (q *query) requestID(name string) string {
	v := q.values.Get(name)
	if v != "" && !inspect.IsID(v) {
		q.fail(name, name+" must be the id of a request, such as req_42")
		return ""
	}
	return v
}

func (q *query) limit() int {
	v := q.values.Get("limit")
	if v == "" {
		return defaultLimit
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxLimit {
		q.fail("limit", "limit must be 1 to "+strconv.Itoa(maxLimit))
	}
	return n
}

func (q *query) flag(name string) bool {
	switch v := q.values.Get(name); v {
	case "", "false":
		return false
	case "true":
		return true
	}
	q.fail(name, name+" must be true or false")
	return false
}

// status reads a status such as 404, or a class such as 4xx.
func (q *query) status() int {
	v := q.values.Get("status")
	if v == "" {
		return 0
	}
	if len(v) == 3 && v[0] >= '1' && v[0] <= '5' {
		if strings.EqualFold(v[1:], "xx") {
			return int(v[0] - '0')
		}
		if n, err := strconv.Atoi(v); err == nil && n >= 100 {
			return n
		}
	}
	q.fail("status", "status must be an HTTP status such as 404, or a class such as 4xx")
	return 0
}

// filterNames are the parameters that readFilter reads.
var filterNames = []string{"tunnel_id", "kind", "method", "status", "q", "since", "until", "before", "limit"}

func readFilter(q *query) inspect.Filter {
	f := inspect.Filter{
		TunnelID: q.text("tunnel_id", 128),
		Kind:     q.text("kind", 8),
		Method:   strings.ToUpper(q.text("method", 32)),
		Status:   q.status(),
		Text:     q.text("q", 256),
		Since:    q.time("since"),
		Until:    q.time("until"),
		Before:   q.requestID("before"),
		Limit:    q.limit(),
	}
	if f.Kind != "" && f.Kind != inspect.KindHTTP && f.Kind != inspect.KindFlow {
		q.fail("kind", "kind must be http or flow")
	}
	return f
}

func (s *Server) listRequests(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, filterNames...)
	if err != nil {
		return err
	}
	f := readFilter(q)
	if q.err != nil {
		return q.err
	}
	items := s.cfg.Agent.Requests(f)
	for i := range items {
		items[i].Time = items[i].Time.UTC()
	}
	return writeItems(w, items)
}

func (s *Server) clearRequests(w http.ResponseWriter, r *http.Request) error {
	if err := decodeOptional(r, &struct{}{}); err != nil {
		return err
	}
	s.cfg.Agent.ClearRequests()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) getRequest(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "reveal")
	if err != nil {
		return err
	}
	reveal := q.flag("reveal")
	if q.err != nil {
		return q.err
	}
	d, ok := s.cfg.Agent.Request(pathID(r), reveal)
	if !ok {
		return notFound("request with this id; newer ones may have replaced it")
	}
	d.Time = d.Time.UTC()
	return writeData(w, http.StatusOK, d)
}

func (s *Server) replayRequest(w http.ResponseWriter, r *http.Request) error {
	var edit inspect.Edit
	if err := decodeOptional(r, &edit); err != nil {
		return err
	}
	if edit.Body != nil && edit.BodyBase64 != nil {
		return invalid("body_base64", "give body or body_base64, not both")
	}
	d, err := s.cfg.Agent.Replay(r.Context(), pathID(r), edit)
	if err != nil {
		return err
	}
	d.Time = d.Time.UTC()
	return writeData(w, http.StatusOK, d)
}

func (s *Server) exportHAR(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, append([]string{"reveal"}, filterNames...)...)
	if err != nil {
		return err
	}
	f, reveal := readFilter(q), q.flag("reveal")
	if q.values.Get("limit") == "" {
		f.Limit = maxLimit
	}
	if q.err != nil {
		return q.err
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="adit.har"`)
	if err := s.cfg.Agent.WriteHAR(w, f, reveal); err != nil {
		// The response has begun, so all that is left is to break it off. If the reader has gone,
		// or accepts no more, nobody needs to be told.
		if _, gone := errors.AsType[*net.OpError](err); !gone {
			s.log.Warn("the archive could not be written", "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s *Server) importHAR(w http.ResponseWriter, r *http.Request) error {
	b, err := readBody(r)
	if err != nil {
		return err
	}
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0:
		return badJSON("the body is empty; send a JSON object")
	case b[0] != '{':
		return badJSON("the body must be a JSON object")
	}
	if err := checkJSON(b); err != nil {
		return err
	}
	added, err := s.cfg.Agent.ReadHAR(bytes.NewReader(b))
	if err != nil {
		return err
	}
	return writeData(w, http.StatusOK, struct {
		Added int `json:"added"`
	}{added})
}
