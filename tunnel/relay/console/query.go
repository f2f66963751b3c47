package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// query is a query string that remembers its first fault.
type query struct {
	url.Values
	err error
}

// readQuery refuses parameters that are not in known, or that occur twice. Ignoring them
// would answer a different question from the one asked.
func readQuery(r *http.Request, known ...string) (*query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &Error{http.StatusBadRequest, "invalid_parameter", "the query string is malformed", ""}
	}
	for name, all := range values {
		if !slices.Contains(known, name) {
			return nil, invalid(name, "%s is not known", name)
		}
		if len(all) > 1 {
			return nil, invalid(name, "%s is given twice", name)
		}
	}
	return &query{Values: values}, nil
}

// takesQuery lists the routes that parse a query string themselves.
var takesQuery = []string{
	"GET /api/v1/access", "GET /api/v1/access/export", "GET /api/v1/access/live",
	"GET /api/v1/audit", "GET /api/v1/audit/verify", "GET /api/v1/figures",
}

// checkQuery refuses a query string on routes without parameters.
func checkQuery(r *http.Request, pattern string) error {
	if r.URL.RawQuery == "" || slices.Contains(takesQuery, pattern) {
		return nil
	}
	_, err := readQuery(r)
	return err
}

func (q *query) fail(field, format string, args ...any) {
	if q.err == nil {
		q.err = invalid(field, format, args...)
	}
}

// limit returns how many items are requested, from 1 to most.
func (q *query) limit(usual, most int) int {
	text := q.Get("limit")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		q.fail("limit", "limit must be 1 to %d", most)
	}
	return n
}

// status returns a status such as 404, or 4 for the class 4xx, or 0 if there is none.
func (q *query) status() int {
	text := q.Get("status")
	if text == "" {
		return 0
	}
	if len(text) == 3 && text[0] >= '1' && text[0] <= '5' {
		if strings.EqualFold(text[1:], "xx") {
			return int(text[0] - '0')
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 100 {
			return n
		}
	}
	q.fail("status", "status must be a status such as 404 or 4xx")
	return 0
}

func (q *query) time(name string) time.Time {
	text := q.Get(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.fail(name, "%s must be a time such as 2026-11-01T00:00:00Z", name)
	}
	return t
}
