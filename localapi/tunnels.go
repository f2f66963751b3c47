package localapi

import (
	"context"
	"net/http"
	"net/url"

	"adit/tunnel/agent"
	"adit/tunnel/agent/definition"
)

func (s *Server) listEndpoints(w http.ResponseWriter, _ *http.Request) error {
	items := s.cfg.Agent.Endpoints()
	for i := range items {
		items[i].Since = items[i].Since.UTC()
	}
	return writeItems(w, items)
}

func (s *Server) listTunnels(w http.ResponseWriter, _ *http.Request) error {
	items := s.cfg.Agent.Tunnels()
	for i := range items {
		items[i] = utcTunnel(items[i])
	}
	return writeItems(w, items)
}

func (s *Server) getTunnel(w http.ResponseWriter, r *http.Request) error {
	t, ok := s.cfg.Agent.Tunnel(pathID(r))
	if !ok {
		return notFound("tunnel with this id")
	}
	return writeData(w, http.StatusOK, utcTunnel(t))
}

func (s *Server) createTunnel(w http.ResponseWriter, r *http.Request) error {
	var spec definition.Tunnel
	if err := decode(r, &spec); err != nil {
		return err
	}
	if err := checkPorts(&spec.LocalPort, &spec.RemotePort); err != nil {
		return err
	}
	if err := checkOnce(spec.Policy); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	t, err := s.cfg.Agent.Create(ctx, spec)
	if err != nil {
		return err
	}
	w.Header().Set("Location", Prefix+"/tunnels/"+url.PathEscape(t.ID))
	return writeData(w, http.StatusCreated, utcTunnel(t))
}

func (s *Server) changeTunnel(w http.ResponseWriter, r *http.Request) error {
	var patch definition.Patch
	if err := decode(r, &patch); err != nil {
		return err
	}
	if err := checkPorts(patch.LocalPort, patch.RemotePort); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	t, err := s.cfg.Agent.Change(ctx, pathID(r), patch)
	if err != nil {
		return err
	}
	return writeData(w, http.StatusOK, utcTunnel(t))
}

// checkPorts refuses ports out of range; nil means absent. Everything else about a tunnel is for
// the agent to judge.
func checkPorts(local, remote *int) error {
	if local != nil && (*local < 1 || *local > 65535) {
		return invalid("local_port", "local_port is required, 1 to 65535")
	}
	if remote != nil && (*remote < 0 || *remote > 65535) {
		return invalid("remote_port", "remote_port must be 1 to 65535, or 0 to let the relay choose")
	}
	return nil
}

// switchTunnel makes a handler from an operation of the agent on one tunnel.
func (s *Server) switchTunnel(do func(context.Context, string) (agent.Tunnel, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := decodeOptional(r, &struct{}{}); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
		defer cancel()
		t, err := do(ctx, pathID(r))
		if err != nil {
			return err
		}
		return writeData(w, http.StatusOK, utcTunnel(t))
	}
}

func (s *Server) deleteTunnel(w http.ResponseWriter, r *http.Request) error {
	if err := decodeOptional(r, &struct{}{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), controlTimeout)
	defer cancel()
	if err := s.cfg.Agent.DeleteTunnel(ctx, pathID(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func utcTunnel(t agent.Tunnel) agent.Tunnel {
	t.CreatedAt = t.CreatedAt.UTC()
	return t
}
