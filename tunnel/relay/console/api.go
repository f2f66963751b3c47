package console

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"adit/internal/prom"
	"adit/tunnel/relay/policy"
)

// api registers /healthz, /readyz, /metrics and /api/v1/.
func (c *Console) api() {
	c.probes()
	methods := map[string][]string{"/healthz": {http.MethodGet}, "/readyz": {http.MethodGet}, "/metrics": {http.MethodGet}}
	for _, route := range slices.Concat(c.relayRoutes(), c.operatorRoutes()) {
		method, path, _ := strings.Cut(route.pattern, " ")
		methods[path] = append(methods[path], method)
		n := needOf(route.pattern)
		c.handle(route.pattern, func(w http.ResponseWriter, r *http.Request) error {
			r, _, err := c.admit(r, n)
			if err != nil {
				return err
			}
			if err := checkQuery(r, route.pattern); err != nil {
				return err
			}
			return c.changing(r, n == needRead, func() error { return route.serve(w, r) })
		})
	}
	for _, route := range c.ownRoutes() {
		method, path, _ := strings.Cut(route.pattern, " ")
		methods[path] = append(methods[path], method)
		c.handle(route.pattern, func(w http.ResponseWriter, r *http.Request) error {
			if route.need == needNothing {
				return route.serve(w, r, who{})
			}
			r, who, err := c.admit(r, route.need)
			if err != nil {
				return err
			}
			if err := checkQuery(r, route.pattern); err != nil {
				return err
			}
			return c.changing(r, route.need == needRead, func() error { return route.serve(w, r, who) })
		})
	}
	for path, allowed := range methods {
		if slices.Contains(allowed, http.MethodGet) {
			allowed = append(allowed, http.MethodHead)
		}
		c.handle(path, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			return &Error{http.StatusMethodNotAllowed, "method_not_allowed", "this path takes " + strings.Join(allowed, ", "), ""}
		})
	}
	c.handle("/api/", func(http.ResponseWriter, *http.Request) error {
		return &Error{http.StatusNotFound, "not_found", "there is nothing at this path", ""}
	})
}

// changing serves a request. If the request changes something, it is announced first, so
// that no change is made without being in the audit log. asks is set if the request
// changes nothing, whatever its method.
func (c *Console) changing(r *http.Request, asks bool, serve func() error) (err error) {
	if asks || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return serve()
	}
	end, err := c.cfg.Relay.BeginChange(r.Context(), r.Method+" "+r.URL.Path)
	if err != nil {
		return err
	}
	defer func() { end(err) }()
	return serve()
}

// probes registers what programs ask for.
func (c *Console) probes() {
	c.handle("GET /healthz", func(w http.ResponseWriter, r *http.Request) error {
		s := c.cfg.Relay.Status()
		w.Header().Set("Content-Type", "application/json")
		// A daemon's answer has the same fields except for service. So anyone who asks
		// the wrong port can tell.
		return json.NewEncoder(w).Encode(map[string]string{"status": s.State, "version": s.Version, "service": "relay"})
	})
	c.handle("GET /readyz", func(w http.ResponseWriter, r *http.Request) error {
		status, state := http.StatusOK, "ready"
		if why := c.cfg.Relay.Ready(); why != "" {
			status, state = http.StatusServiceUnavailable, why
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		return json.NewEncoder(w).Encode(map[string]string{"status": state, "store": c.cfg.Relay.StoreCondition()})
	})
	c.handle("GET /metrics", func(w http.ResponseWriter, r *http.Request) error {
		if !c.cfg.OpenMetrics {
			if _, _, err := c.admit(r, needRead); err != nil {
				return err
			}
		}
		w.Header().Set("Content-Type", prom.ContentType)
		_, _ = w.Write([]byte(c.cfg.Relay.Metrics()))
		return nil
	})
}

// relayRoutes returns the routes for clients, what they have here, and policies.
func (c *Console) relayRoutes() []route {
	relay := c.cfg.Relay
	return []route{
		{"GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) error { return write(w, 200, relay.Status()) }},
		{"GET /api/v1/clients", func(w http.ResponseWriter, _ *http.Request) error { return write(w, 200, items{relay.Clients()}) }},
		{"POST /api/v1/clients", c.addClient},
		{"POST /api/v1/clients/{name}/rotate", c.rotateClient},
		{"POST /api/v1/clients/{name}/revoke", c.revokeClient},
		{"DELETE /api/v1/clients/{name}", c.revokeClient},
		{"GET /api/v1/sessions", func(w http.ResponseWriter, _ *http.Request) error { return write(w, 200, items{relay.SessionList()}) }},
		{"GET /api/v1/nodes", func(w http.ResponseWriter, _ *http.Request) error { return write(w, 200, items{relay.NodeList()}) }},
		{"GET /api/v1/endpoints", func(w http.ResponseWriter, _ *http.Request) error {
			return write(w, 200, items{relay.EndpointList()})
		}},
		{"GET /api/v1/claims", func(w http.ResponseWriter, _ *http.Request) error { return write(w, 200, items{relay.ClaimList()}) }},
		{"DELETE /api/v1/claims/{target}", func(w http.ResponseWriter, r *http.Request) error {
			if err := relay.ReleaseClaim(r.Context(), r.PathValue("target")); err != nil {
				return err
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		}},
		{"POST /api/v1/sign-ins/end", func(w http.ResponseWriter, r *http.Request) error {
			var q struct {
				User string `json:"user"`
			}
			if err := read(r, &q); err != nil {
				return err
			}
			v, err := relay.EndSignIns(r.Context(), q.User)
			return give(w, v, err)
		}},
		{"GET /api/v1/policies", func(w http.ResponseWriter, _ *http.Request) error { return write(w, 200, items{relay.PolicyList()}) }},
		{"GET /api/v1/policies/{target}", func(w http.ResponseWriter, r *http.Request) error {
			p, err := relay.Policy(r.PathValue("target"))
			return giveTagged(w, p.Tag, p, err)
		}},
		{"PUT /api/v1/policies/{target}", c.setPolicy},
		{"DELETE /api/v1/policies/{target}", func(w http.ResponseWriter, r *http.Request) error {
			e, err := ExpectedBy(r)
			if err != nil {
				return err
			}
			if err := relay.DeletePolicy(r.Context(), r.PathValue("target"), e); err != nil {
				return err
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		}},
		{"GET /api/v1/backup", func(w http.ResponseWriter, r *http.Request) error {
			b, err := relay.Backup(r.Context())
			if err != nil {
				return err
			}
			return write(w, 200, b)
		}},
	}
}

func (c *Console) addClient(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		Name  string `json:"name"`
		Scope Scope  `json:"scope"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	t, err := c.cfg.Relay.CreateClient(r.Context(), q.Name, q.Scope)
	if err != nil {
		return err
	}
	return write(w, http.StatusCreated, t)
}

func (c *Console) rotateClient(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		OverlapSeconds *int64 `json:"overlap_seconds"`
	}
	if r.ContentLength != 0 {
		if err := read(r, &q); err != nil {
			return err
		}
	}
	overlap := 24 * time.Hour
	if q.OverlapSeconds != nil {
		if *q.OverlapSeconds < 0 || *q.OverlapSeconds > 90*24*3600 {
			return &Error{http.StatusBadRequest, "invalid_parameter", "overlap_seconds must be 0 to 7776000", "overlap_seconds"}
		}
		overlap = time.Duration(*q.OverlapSeconds) * time.Second
	}
	t, err := c.cfg.Relay.NewClientToken(r.Context(), r.PathValue("name"), overlap)
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, t)
}

func (c *Console) revokeClient(w http.ResponseWriter, r *http.Request) error {
	if err := c.cfg.Relay.DropClient(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (c *Console) setPolicy(w http.ResponseWriter, r *http.Request) error {
	var document json.RawMessage
	if err := read(r, &document); err != nil {
		return err
	}
	e, err := ExpectedBy(r)
	if err != nil {
		return err
	}
	p, err := c.cfg.Relay.SetPolicy(r.Context(), r.PathValue("target"), document, e)
	return giveTagged(w, p.Tag, p, err)
}

// giveTagged is like give, with the tag that the next change may name.
func giveTagged(w http.ResponseWriter, tag string, v any, err error) error {
	if err == nil {
		w.Header().Set("ETag", `"`+tag+`"`)
	}
	return give(w, v, err)
}

// explain answers what would happen to a visitor. Those who may not set policies cannot
// use it to guess visitors' passwords.
func (c *Console) explain(w http.ResponseWriter, r *http.Request, who who) error {
	var q Question
	if err := read(r, &q); err != nil {
		return err
	}
	q.Target = r.PathValue("target")
	key := "explain " + who.actor.Kind + " " + who.actor.Name
	guesses := q.Password != "" && !who.may(needWrite)
	if guesses && !c.limits.Take(key) {
		return errTries
	}
	e, err := c.cfg.Relay.Explain(q)
	wrong := func(s policy.Step) bool { return s.Rule == policy.RuleBasicAuth && s.Refuses }
	if guesses && !slices.ContainsFunc(e.Steps, wrong) {
		c.limits.Right(key)
	}
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, e)
}
