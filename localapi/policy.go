package localapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
)

func (s *Server) getPolicy(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	p, err := s.cfg.Agent.Policy(ctx, pathID(r))
	if err != nil {
		return err
	}
	return writeData(w, http.StatusOK, p)
}

// setPolicy hands the document on: its fields are the relay's to judge, which
// may know more of them.
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
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	p, err := s.cfg.Agent.SetPolicy(ctx, pathID(r), document)
	if err != nil {
		return err
	}
	return writeData(w, http.StatusOK, p)
}
