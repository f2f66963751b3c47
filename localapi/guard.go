package localapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// guard decides who may talk to the server, by the host name they use and the page they are on.
type guard struct {
	hosts   map[hostPort]bool
	origins []string
	cross   *http.CrossOriginProtection
}

func newGuard(hosts, origins []string) (*guard, error) {
	g := &guard{hosts: make(map[hostPort]bool), cross: http.NewCrossOriginProtection()}
	for i, h := range hosts {
		parsed, ok := parseHost(h)
		if !ok {
			return nil, fmt.Errorf("local_api.allowed_hosts[%d]: %q is not a name or name:port", i, h)
		}
		g.hosts[parsed] = true
	}
	for i, o := range origins {
		origin, err := parseOrigin(o)
		if err != nil {
			return nil, fmt.Errorf("local_api.allowed_origins[%d]: %w", i, err)
		}
		if err := g.cross.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("local_api.allowed_origins[%d]: %w", i, err)
		}
		g.origins = append(g.origins, origin)
	}
	return g, nil
}

// parseOrigin parses an origin in the form that browsers send (RFC 6454 §6.2).
func parseOrigin(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q is not an origin such as https://console.example", s)
	}
	if _, ok := parseHost(u.Host); !ok {
		return "", fmt.Errorf("%q has no plain host name", s)
	}
	host := strings.ToLower(u.Host)
	switch u.Scheme { // a browser leaves the usual port out
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + host, nil
}

// checkOrigin refuses pages of other origins, whatever the method: they may not read either.
func (g *guard) checkOrigin(r *http.Request) error {
	origins := r.Header.Values("Origin")
	switch {
	case len(origins) > 1:
		return forbiddenOrigin(strings.Join(origins, ", "))
	case len(origins) == 1:
		if !g.trusted(r) && !ownOrigin(origins[0], r.Host) {
			return forbiddenOrigin(origins[0])
		}
	}
	if err := g.cross.Check(r); err != nil {
		return forbiddenOrigin(r.Header.Get("Origin"))
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return nil
	}
	if g.trusted(r) || followsLink(r) {
		return nil
	}
	return forbiddenOrigin(r.Header.Get("Origin"))
}

// followsLink reports whether a person follows a link from another page to the Web UI: the page is
// shown, and the other page learns nothing.
func followsLink(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document" &&
		!isAPI(r.URL.Path)
}

// isAPI reports whether path is for programs rather than for people.
func isAPI(path string) bool {
	return path == "/api" || strings.HasPrefix(path, "/api/") || path == HealthPath || path == "/metrics"
}

// ownOrigin reports whether origin is this server's own under the name host, which checkHost has
// accepted. The scheme may be that of a proxy in front of the server.
func ownOrigin(origin, host string) bool {
	rest, ok := strings.CutPrefix(origin, "http://")
	if !ok {
		rest, ok = strings.CutPrefix(origin, "https://")
	}
	return ok && strings.EqualFold(rest, host)
}

// trusted reports whether the request comes from a page of an allowed origin.
func (g *guard) trusted(r *http.Request) bool {
	return slices.Contains(g.origins, r.Header.Get("Origin"))
}

// allow tells the browser that an allowed origin may read the response.
func (g *guard) allow(h http.Header, r *http.Request) {
	if len(g.origins) == 0 {
		return
	}
	h.Add("Vary", "Origin")
	if g.trusted(r) {
		h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		h.Set("Access-Control-Expose-Headers", "Location, ETag, Retry-After, WWW-Authenticate, Allow")
	}
}

// preflight reports whether the request is a browser's preflight request.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
		r.Header.Get("Access-Control-Request-Method") != ""
}

// answerPreflight answers for an origin that checkOrigin has accepted.
func (g *guard) answerPreflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers, Access-Control-Request-Private-Network")
	if g.trusted(r) {
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID")
		h.Set("Access-Control-Max-Age", "600")
		if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
			h.Set("Access-Control-Allow-Private-Network", "true")
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func forbiddenOrigin(origin string) error {
	who := "pages of another site"
	if origin != "" && len(origin) <= 200 {
		who = "pages of " + origin
	}
	return &problem{
		status: http.StatusForbidden, code: codeForbiddenOrigin,
		message: who + " may not use this API; [local_api] allowed_origins lists those that may",
	}
}

// secure sets the headers that every response carries. Handlers may override Cache-Control.
func secure(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
		"font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}
