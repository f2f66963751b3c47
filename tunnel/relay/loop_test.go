package relay

import (
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// passedBy is a site that answers with who passed a request on.
func passedBy(w http.ResponseWriter, r *http.Request) {
	w.Write([]byte(strings.Join(r.Header["Cdn-Loop"], " + ")))
}

// startProxy serves over HTTP/2 what the relay serves under a name.
func (s *site) startProxy(t *testing.T, name string) string {
	t.Helper()
	return startH2C(t, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", s.Addrs().HTTP, name
	}})
}

// TestATunnelToTheRelayItselfEnds checks for loops: otherwise each request would come
// again and again, with another stream and connection each time.
func TestATunnelToTheRelayItselfEnds(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(passedBy))
	for name, url := range map[string]string{
		"HTTP/1.1": s.agent.mustClaim("loop", wire.Claim{Type: wire.TypeHTTP, Domain: "loop"}, s.Addrs().HTTP).PublicURL,
		"HTTP/2":   s.agent.mustClaim("loop2", wire.Claim{Type: wire.TypeHTTP, Domain: "loop2", HTTP2: true}, s.startProxy(t, "loop2.relay.test")).PublicURL,
	} {
		status, body := get(t, s.visitor, url)
		if status != http.StatusLoopDetected || !strings.Contains(body, "leads back to itself") {
			t.Errorf("%s: status %d, %.200s", name, status, body)
		}
	}
	if open := s.agent.open.Load(); open > 12 {
		t.Errorf("%d streams are open", open)
	}
}

// TestServicesMayAskForOneAnother checks that a request that a service passes on to
// another tunnel is not taken for a loop, and that what others recorded of its path is
// kept.
func TestServicesMayAskForOneAnother(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(passedBy))
	back := wire.Claim{Type: wire.TypeHTTP, Domain: "front", HostHeader: "shop.relay.test"}
	byHTTP2 := back
	byHTTP2.Domain, byHTTP2.HTTP2 = "front2", true
	fronts := []string{
		s.agent.mustClaim("front", back, s.Addrs().HTTP).PublicURL,
		s.agent.mustClaim("front2", byHTTP2, s.startProxy(t, "shop.relay.test")).PublicURL,
	}
	for _, url := range append(fronts, s.http) {
		for before, want := range map[string]string{
			"":                                  "relay.test",
			"other.example; x=1, relay.test:99": "other.example; x=1, relay.test:99, relay.test",
		} {
			if url != s.http {
				want += ", relay.test"
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if before != "" {
				req.Header.Set("CDN-Loop", before)
			}
			resp, err := s.visitor.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK || string(got) != want {
				t.Errorf("%s after %q: status %d, passed by %q, want %q", url, before, resp.StatusCode, got, want)
			}
		}
	}
}

// TestALoopThroughNodesEnds checks that each of two nodes detects it.
func TestALoopThroughNodesEnds(t *testing.T) {
	c := startNodes(t, 2)
	agent := connect(t, c.all[0].client(t, "shop"), "i1")
	agent.mustClaim("loop", wire.Claim{Type: wire.TypeHTTP, Domain: "loop"}, c.all[1].Addrs().HTTP)
	v := &http.Client{Transport: &http.Transport{}}
	eventually(t, "the other node leads there", func() bool {
		status, _ := c.all[1].page(t, v, "loop.relay.test")
		return status == http.StatusLoopDetected
	})
	if open := agent.open.Load(); open > 6 {
		t.Errorf("%d streams are open", open)
	}
}
