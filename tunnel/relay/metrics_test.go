package relay

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// figure returns one sample of a page of figures, or -1.
func figure(page, sample string) float64 {
	for line := range strings.Lines(page) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), sample+" "); ok {
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				return v
			}
		}
	}
	return -1
}

// metric returns a current figure of a relay, or -1.
func metric(t *testing.T, r *testRelay, sample string) float64 {
	t.Helper()
	status, body, _ := r.ask(t, "GET", "/metrics", "", map[string]string{"Authorization": "Bearer " + r.AdminToken()})
	if status != http.StatusOK {
		t.Fatalf("the figures: status %d", status)
	}
	return figure(body, sample)
}

func TestMetricsCountWhatHappens(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("hello"))
	admin := map[string]string{"Authorization": "Bearer " + s.AdminToken()}
	page := func() string {
		status, body, header := s.ask(t, "GET", "/metrics", "", admin)
		if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/plain; version=0.0.4") {
			t.Fatalf("status %d, type %q", status, header.Get("Content-Type"))
		}
		return body
	}
	before := page()
	g := s.agent.mustClaim("zebra", wire.Claim{Type: wire.TypeHTTP, Domain: "zebra"}, startOrigin(t, text("hello")))
	down := s.agent.mustClaim("zebra-down", wire.Claim{Type: wire.TypeHTTP, Domain: "zebra-down"}, "127.0.0.1:1")
	port := portOf(s.edge.HTTPAddr())
	for range 3 {
		resp, err := s.visitor.Post(g.PublicURL+"/secret-path", "", strings.NewReader("12345678"))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	get(t, s.visitor, down.PublicURL)
	get(t, s.visitor, fmt.Sprintf("http://nobody.relay.test:%d/", port))
	s.setPolicy(t, "zebra", `{"deny":["0.0.0.0/0"]}`)
	get(t, s.visitor, g.PublicURL)
	wrong := s.token
	wrong.Secret[0] ^= 1
	if _, err := dialAgent(t, wrong, "i9"); err == nil {
		t.Fatal("a wrong token was let in")
	}
	for _, c := range []struct {
		sample string
		rise   float64
	}{
		{`adit_relay_visits_total{type="http",outcome="2xx"}`, 3},
		{`adit_relay_visits_total{type="http",outcome="5xx"}`, 1},
		{`adit_relay_visits_total{type="http",outcome="refused"}`, 1},
		{`adit_relay_requests_unknown_total`, 1},
		{`adit_relay_hellos_total{outcome="unauthorized"}`, 1},
		{`adit_relay_endpoints{type="http"}`, 2},
		{`adit_relay_visitor_bytes_total{direction="in"}`, 24},
	} {
		eventually(t, c.sample, func() bool { return figure(page(), c.sample) == max(figure(before, c.sample), 0)+c.rise })
	}
	for _, sample := range []string{`adit_relay_handshakes_total{outcome="done"}`, `adit_relay_store_writes_total{outcome="done"}`, `adit_relay_store_write_seconds_total`, `adit_relay_clients`, `adit_relay_ready`, `adit_relay_store_connected`} {
		if got := figure(page(), sample); got <= 0 {
			t.Errorf("%s is %v", sample, got)
		}
	}
	for _, secret := range []string{"secret-path", "zebra", "nobody", "127.0.0.1", s.AdminToken()} {
		if strings.Contains(page(), secret) {
			t.Errorf("the figures name %q", secret)
		}
	}
	eventually(t, "the refused session leaves", func() bool { return len(s.roster.All()) == 1 })
	// The bytes of an endpoint that is gone still count.
	bytes := figure(page(), `adit_relay_visitor_bytes_total{direction="in"}`)
	if err := s.agent.call(http.MethodDelete, wire.PathClaims+"zebra", nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := figure(page(), `adit_relay_visitor_bytes_total{direction="in"}`); got != bytes {
		t.Errorf("bytes fell from %v to %v", bytes, got)
	}
}

func TestWhoMayReadMetrics(t *testing.T) {
	closed := startRelay(t, testConfig(t.TempDir()))
	cfg := testConfig(t.TempDir())
	cfg.Console.OpenMetrics = true
	open := startRelay(t, cfg)
	for _, c := range []struct {
		name   string
		relay  *testRelay
		path   string
		status int
	}{
		{"closed", closed, "/metrics", 401},
		{"open", open, "/metrics", 200},
		{"open, the API", open, "/api/v1/status", 401},
		{"ready", closed, "/readyz", 200},
	} {
		if status, body, _ := c.relay.ask(t, "GET", c.path, "", nil); status != c.status {
			t.Errorf("%s: status %d, %s; want %d", c.name, status, body, c.status)
		}
	}
}

func TestReadyzTurnsVisitorsElsewhere(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	r.drain()
	if status, body, _ := r.ask(t, "GET", "/readyz", "", nil); status != 503 || !strings.Contains(body, "draining") {
		t.Errorf("while draining: status %d, %s", status, body)
	}
	if status, _, _ := r.ask(t, "GET", "/healthz", "", nil); status != 200 {
		t.Errorf("it lives still: status %d", status)
	}
}
