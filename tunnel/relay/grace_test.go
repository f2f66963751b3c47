package relay

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// order posts to a site, and returns once the request is sent.
func order(t *testing.T, v *http.Client, url string) (page <-chan string) {
	t.Helper()
	sent, got := make(chan struct{}), make(chan string, 1)
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, url, strings.NewReader("order"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		resp, err := v.Do(req)
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		got <- resp.Status + ": " + string(body)
	}()
	<-sent
	return got
}

// taker is a site that answers with what it was sent.
func taker(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	io.WriteString(w, "taken: "+string(body))
}

// TestVisitorsWaitWhileAnAgentIsRestarted checks that no order is lost while an agent
// restarts, for example for an update, or while the relay does.
func TestVisitorsWaitWhileAnAgentIsRestarted(t *testing.T) {
	cfg := testConfig(t.TempDir())
	r := startRelayWith(t, Options{Config: cfg, visitorGrace: patience})
	token := r.client(t, "shop")
	site := startOrigin(t, http.HandlerFunc(taker))
	claims := map[string]wire.Claim{"h": {Type: wire.TypeHTTP, Domain: "shop"}, "s": {Type: wire.TypeHTTPS, Domain: "safe"}, "w": {Type: wire.TypeHTTP, Domain: "*.all"}}
	urls := map[string]string{}
	serve := func() *fakeAgent {
		a := connect(t, token, "i1")
		for key, claim := range claims {
			urls[key] = strings.Replace(a.mustClaim(key, claim, site).PublicURL, "*", "one", 1)
		}
		return a
	}
	taken := func(what string, pages map[string]<-chan string) {
		t.Helper()
		for key, page := range pages {
			if got := <-page; got != "200 OK: taken: order" {
				t.Errorf("%s, %s: %.80q", what, key, got)
			}
		}
	}
	ask := func() map[string]<-chan string {
		pages := map[string]<-chan string{}
		for key, url := range urls {
			pages[key] = order(t, r.visitor(t), url)
		}
		return pages
	}
	a := serve()
	taken("at first", ask())
	a.close()
	eventually(t, "the agent is gone", func() bool { return r.roster.Len() == 0 })
	pages := ask()
	a = serve()
	taken("the agent is restarted", pages)

	a.close()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	cfg.EdgeHTTPListen, cfg.EdgeHTTPSListen = r.edge.HTTPAddr().String(), r.edge.HTTPSAddr().String()
	token.Relay = r.Addrs().Tunnel
	cfg.TunnelListen = token.Relay
	r = startRelayWith(t, Options{Config: cfg, visitorGrace: patience})
	pages = ask()
	serve()
	taken("the relay is restarted", pages)
}

// TestNobodyWaitsForWhoIsShutOut checks that nobody waits for a revoked client, which
// does not come back.
func TestNobodyWaitsForWhoIsShutOut(t *testing.T) {
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), visitorGrace: time.Hour})
	a := connect(t, r.client(t, "shop"), "i1")
	url := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("here"))).PublicURL
	if _, err := r.Clients().Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the agent is gone", func() bool { return r.roster.Len() == 0 })
	if got := <-order(t, r.visitor(t), url); !strings.HasPrefix(got, "404 ") {
		t.Errorf("after its agent: %.80q", got)
	}

	a = connect(t, r.client(t, "other"), "i1")
	url = a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "other"}, startOrigin(t, text("here"))).PublicURL
	a.close()
	eventually(t, "the agent is gone", func() bool { return r.roster.Len() == 0 })
	page := order(t, r.visitor(t), url)
	if _, err := r.Clients().Revoke(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if got := <-page; !strings.HasPrefix(got, "404 ") {
		t.Errorf("who waited: %.80q", got)
	}
}

// TestNobodyWaitsForLong checks the limit on waiting, since an agent may be gone for
// good.
func TestNobodyWaitsForLong(t *testing.T) {
	const grace = 50 * time.Millisecond
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), visitorGrace: grace})
	a := connect(t, r.client(t, "shop"), "i1")
	url := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("here"))).PublicURL
	a.close()
	for range 2 {
		if got := <-order(t, r.visitor(t), url); !strings.Contains(got, "This site is offline") {
			t.Errorf("after its agent: %.80q", got)
		}
	}
}
