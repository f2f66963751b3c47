package localapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"
)

// handler answers a request, or returns why not.
type handler func(http.ResponseWriter, *http.Request) error

// route is one row of the table.
type route struct {
	method, path string
	handle       handler
}

// table is the whole API. Every row is described in openapi.yaml; the contract test keeps the two
// in agreement.
func (s *Server) table() []route {
	return []route{
		{"GET   ", "/healthz", s.getHealth},
		{"GET   ", "/metrics", s.getMetrics},
		{"GET   ", "/api/v1/openapi.yaml", s.getOpenAPI},

		{"GET   ", "/api/v1/auth/status", s.getAuth},
		{"POST  ", "/api/v1/auth/configure", s.configureAuth},
		{"DELETE", "/api/v1/auth", s.deleteAuth},

		{"GET   ", "/api/v1/status", s.getStatus},
		{"GET   ", "/api/v1/config", s.getConfig},
		{"POST  ", "/api/v1/pause", s.session(s.cfg.Agent.Pause)},
		{"POST  ", "/api/v1/resume", s.session(s.cfg.Agent.Resume)},
		{"POST  ", "/api/v1/reconnect", s.session(s.cfg.Agent.Reconnect)},

		{"GET   ", "/api/v1/endpoints", s.listEndpoints},
		{"GET   ", "/api/v1/tunnels", s.listTunnels},
		{"POST  ", "/api/v1/tunnels", s.createTunnel},
		{"GET   ", "/api/v1/tunnels/:id", s.getTunnel},
		{"PATCH ", "/api/v1/tunnels/:id", s.changeTunnel},
		{"DELETE", "/api/v1/tunnels/:id", s.deleteTunnel},
		{"POST  ", "/api/v1/tunnels/:id/start", s.switchTunnel(s.cfg.Agent.StartTunnel)},
		{"POST  ", "/api/v1/tunnels/:id/stop", s.switchTunnel(s.cfg.Agent.StopTunnel)},

		{"POST  ", "/api/v1/tunnels/:id/hold", s.holdTunnel},

		{"GET   ", "/api/v1/tunnels/:id/policy", s.getPolicy},
		{"PUT   ", "/api/v1/tunnels/:id/policy", s.setPolicy},

		{"GET   ", "/api/v1/visits", s.listVisits},
		{"GET   ", "/api/v1/invitations", s.listInvitations},
		{"GET   ", "/api/v1/visits/:client/:name", s.mayVisit},
		{"POST  ", "/api/v1/visits/:client/:name", s.visitTunnel},

		{"GET   ", "/api/v1/events", s.streamEvents},

		{"GET   ", "/api/v1/requests", s.listRequests},
		{"DELETE", "/api/v1/requests", s.clearRequests},
		{"GET   ", "/api/v1/requests.har", s.exportHAR},
		{"POST  ", "/api/v1/requests.har", s.importHAR},
		{"GET   ", "/api/v1/requests/:id", s.getRequest},
		{"POST  ", "/api/v1/requests/:id/replay", s.replayRequest},

		{"GET   ", "/api/v1/logs", s.listLogs},
		{"POST  ", "/api/v1/diagnostics", s.runDiagnostics},
		{"POST  ", "/api/v1/speed", s.measureSpeed},

		{"POST  ", "/api/v1/login-links", s.createLoginLink},
		{"POST  ", "/api/v1/session", s.createSession},
		{"DELETE", "/api/v1/session", s.deleteSession},
	}
}

// routes returns the router for the table; everything that is not the API goes to the Web UI.
func (s *Server) routes(ui *static) http.Handler {
	router := httprouter.New()
	// A path either exists or not: there are no redirects to what may have been meant.
	router.RedirectTrailingSlash = false
	router.RedirectFixedPath = false
	router.HandleOPTIONS = false
	router.HandleMethodNotAllowed = true
	for _, row := range s.table() {
		method := strings.TrimSpace(row.method)
		h := row.handle
		if strings.HasPrefix(row.path, Prefix) && !slices.Contains(takesQuery, method+" "+row.path) {
			h = withoutQuery(h)
		}
		if method != http.MethodGet && !strings.HasSuffix(row.path, "/policy") {
			h = withoutConditions(h)
		}
		router.Handler(method, row.path, s.handle(h))
		if method == http.MethodGet && row.path != Prefix+"/events" {
			router.Handler(http.MethodHead, row.path, s.handle(h))
		}
	}
	router.MethodNotAllowed = s.handle(methodNotAllowed)
	router.NotFound = s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if isAPI(r.URL.Path) {
			return notFound("such path in this API")
		}
		return ui.serve(w, r)
	})
	return router
}

// takesQuery are the routes that read a query string themselves.
var takesQuery = []string{
	"GET /api/v1/openapi.yaml", // whose readers may add what they like
	"GET /api/v1/events", "GET /api/v1/requests", "GET /api/v1/requests.har", "GET /api/v1/requests/:id", "GET /api/v1/logs",
}

// withoutQuery makes h refuse requests with parameters: DELETE /requests?tunnel_id=x must not clear
// everything.
func withoutQuery(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.RawQuery != "" {
			if _, err := readQuery(r); err != nil {
				return err
			}
		}
		return h(w, r)
	}
}

// withoutConditions makes h refuse conditional requests, for changes that have nothing to compare a
// condition with: what was to be done only under a condition must not be done without it (RFC 9110,
// section 13.1).
func withoutConditions(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		for _, name := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since"} {
			if r.Header.Get(name) != "" {
				return invalid(name, name+" is for policies only; leave it out here")
			}
		}
		return h(w, r)
	}
}

// handle is where a handler's error ends up.
func (s *Server) handle(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.refuse(w, r, err)
		}
	})
}

// methodNotAllowed answers after the router has set Allow. The router lists OPTIONS for every path,
// but only preflight requests get an answer to it.
func methodNotAllowed(w http.ResponseWriter, _ *http.Request) error {
	methods := slices.DeleteFunc(strings.Split(w.Header().Get("Allow"), ", "), func(m string) bool { return m == http.MethodOptions })
	w.Header().Set("Allow", strings.Join(methods, ", "))
	return &problem{
		status: http.StatusMethodNotAllowed, code: codeMethodNotAllowed,
		message: "this path takes " + w.Header().Get("Allow"),
	}
}

func pathID(r *http.Request) string {
	return httprouter.ParamsFromContext(r.Context()).ByName("id")
}
