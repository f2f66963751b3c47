package localapi

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"adit/internal/logring"
	"adit/tunnel/agent"
)

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, struct {
		Status  string `json:"status"`
		Version string `json:"version"`
	}{"ok", s.cfg.Version})
	return nil
}

func (s *Server) getOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(openAPI)))
	_, _ = w.Write(openAPI)
	return nil
}

func (s *Server) getAuth(w http.ResponseWriter, _ *http.Request) error {
	return writeData(w, http.StatusOK, utcAuth(s.cfg.Agent.Auth()))
}

func (s *Server) configureAuth(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		AuthToken *string `json:"auth_token"`
		ClientID  string  `json:"client_id"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	if in.AuthToken == nil || *in.AuthToken == "" {
		return invalid("auth_token", "auth_token is required")
	}
	if len(in.ClientID) > 128 {
		return invalid("client_id", "client_id must have at most 128 characters")
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	auth, err := s.cfg.Agent.Configure(ctx, *in.AuthToken, in.ClientID)
	if err != nil {
		return err
	}
	return writeData(w, http.StatusOK, utcAuth(auth))
}

func (s *Server) deleteAuth(w http.ResponseWriter, r *http.Request) error {
	if err := decodeOptional(r, &struct{}{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	if err := s.cfg.Agent.Forget(ctx); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) getStatus(w http.ResponseWriter, _ *http.Request) error {
	return writeData(w, http.StatusOK, utcStatus(s.cfg.Agent.Status()))
}

func (s *Server) getConfig(w http.ResponseWriter, _ *http.Request) error {
	var c Configuration
	if s.cfg.Configuration != nil {
		c = s.cfg.Configuration()
	}
	if c.Settings == nil {
		c.Settings = []Setting{}
	}
	return writeData(w, http.StatusOK, c)
}

// session makes a handler from an operation of the agent on its session.
func (s *Server) session(do func(context.Context) (agent.Status, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := decodeOptional(r, &struct{}{}); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
		defer cancel()
		status, err := do(ctx)
		if err != nil {
			return err
		}
		return writeData(w, http.StatusOK, utcStatus(status))
	}
}

func (s *Server) listLogs(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "level", "since", "limit")
	if err != nil {
		return err
	}
	level, since, limit := slog.LevelInfo, q.time("since"), q.limit()
	switch q.values.Get("level") {
	case "", "info":
	case "debug":
		level = slog.LevelDebug
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	default:
		q.fail("level", "level must be debug, info, warn or error")
	}
	if q.err != nil {
		return q.err
	}
	var lines []logring.Line
	if s.cfg.Logs != nil {
		lines = s.cfg.Logs(level, since, limit)
	}
	return writeItems(w, lines)
}

// utcStatus and the like keep the promise that all times are in UTC, wherever the agent took them
// from.
func utcStatus(st agent.Status) agent.Status {
	st.StartedAt = st.StartedAt.UTC()
	st.ConnectedSince = utcTime(st.ConnectedSince)
	return st
}

func utcAuth(a agent.AuthStatus) agent.AuthStatus {
	a.ConfiguredAt = utcTime(a.ConfiguredAt)
	return a
}

func utcTime(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
