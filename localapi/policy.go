package localapi

import (
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
	var fields map[string]json.RawMessage
	if err := decode(r, &fields); err != nil {
		return err
	}
	if fields == nil {
		return invalid("policy", "the policy must be a JSON object; {} lets everybody in")
	}
	document, err := json.Marshal(fields)
	if err != nil {
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
