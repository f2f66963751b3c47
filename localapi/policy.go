package localapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"adit/internal/jsonkeys"
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

// checkOnce refuses objects of valid JSON that have a field twice, at any depth.
func checkOnce(b []byte) error {
	if name := jsonkeys.Twice(b); name != "" {
		return invalid(name, name+" is given twice")
	}
	return nil
}

// setPolicy passes on the document and the conditions for replacing the old one. Judging both is
// left to the relay, which may know more fields of a document.
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
