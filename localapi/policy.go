package localapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"adit/tunnel/agent"
)

func (s *Server) getPolicy(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	p, err := s.cfg.Agent.Policy(ctx, pathID(r))
	if err != nil {
		return err
	}
	return writePolicy(w, p)
}

func writePolicy(w http.ResponseWriter, p agent.TunnelPolicy) error {
	if p.Tag != "" {
		w.Header().Set("ETag", p.Tag)
	}
	return writeData(w, http.StatusOK, p)
}

// checkOnce refuses objects of valid JSON that have a field twice, at any depth:
// of two lists of who is refused, the relay would take one.
func checkOnce(b []byte) error {
	var open []map[string]bool // of each object and list around; nil for a list
	isKey := false
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		token, err := d.Token()
		if err != nil {
			return nil // the end; whether it is JSON was asked before
		}
		switch token {
		case json.Delim('{'):
			open = append(open, map[string]bool{})
		case json.Delim('['):
			open = append(open, nil)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			if isKey {
				name := token.(string)
				seen := open[len(open)-1]
				if seen[name] {
					name = strings.ToValidUTF8(name[:min(len(name), 64)], "")
					return invalid(name, name+" is given twice")
				}
				seen[name], isKey = true, false
				continue
			}
		}
		isKey = len(open) > 0 && open[len(open)-1] != nil
	}
}

// setPolicy hands the document on, and what it may replace: both are the relay's
// to judge, which may know more of a document's fields.
func (s *Server) setPolicy(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	document := json.RawMessage(bytes.TrimSpace(body))
	if len(document) == 0 || document[0] != '{' {
		return badJSON("the body must be a JSON object; {} lets everybody in")
	}
	if err := checkJSON(document); err != nil {
		return err
	}
	if err := checkEscapes(document); err != nil {
		return err
	}
	if err := checkOnce(document); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	expected := make(http.Header)
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if values := r.Header.Values(name); values != nil {
			expected[name] = values
		}
	}
	p, err := s.cfg.Agent.SetPolicy(ctx, pathID(r), document, expected)
	if err != nil {
		return err
	}
	return writePolicy(w, p)
}
