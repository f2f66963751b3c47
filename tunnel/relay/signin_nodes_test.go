package relay

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"adit/internal/freeport"
	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// TestSignInOfSeveralNodes signs in a visitor whose steps may each be handled by a
// different node.
func TestSignInOfSeveralNodes(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startNodes(t, 0)
	port := freeport.Get(t)
	provider := signInWith(t, port)
	for i := range 2 {
		cfg := c.config(i)
		cfg.EdgeHTTPSListen = net.JoinHostPort(cfg.PublicHost, strconv.Itoa(port)) // they have one name, and so one port
		cfg.SignIn = provider
		c.all = append(c.all, startRelayWith(t, Options{Config: cfg}))
	}
	c.awaitWhole(c.all...)
	s := &site{testRelay: c.all[0]}
	a := connect(t, s.at(c.clientEverywhere("shop")), "i1")
	page := a.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, startOrigin(t, http.HandlerFunc(whoSite))).PublicURL + "/cart?a=b"
	s.setPolicy(t, "shop", onlyTheFirst)
	for _, r := range c.all {
		eventually(t, "every node has the tunnel and its policy", func() bool {
			return len(r.edge.Endpoints()) == 1 && r.policies.Get(claims.TargetDomain("shop.relay.test")) != nil
		})
	}

	// at has a browser's connections lead to a node from now on.
	at := func(b *http.Client, i int) {
		t.Helper()
		transport := b.Transport.(*http.Transport)
		transport.CloseIdleConnections()
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, _ := net.SplitHostPort(addr)
			if strings.HasSuffix(host, ".relay.test") {
				host = c.config(i).PublicHost
			}
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(host, port))
		}
	}
	for i, name := range []string{"the callback alone at the second", "begun at the second and ended at the first", "begun at the first and ended at the second"} {
		begins, returns, ends := i&1, 1-i>>1, i>>1
		b := s.browser(t)
		at(b, begins)
		follow := b.CheckRedirect
		b.CheckRedirect = func(r *http.Request, via []*http.Request) error {
			switch r.URL.Path {
			case "/callback":
				at(b, returns)
			case "/.adit/sign-in":
				at(b, ends)
			}
			return follow(r, via)
		}
		resp, body := signIn(t, b, page, "test-user@localhost")
		if resp.StatusCode != 200 || resp.Request.URL.String() != page || !strings.Contains(body, "email=test-user@zitadel.ch") {
			t.Errorf("%s: status %d at %s: %s", name, resp.StatusCode, resp.Request.URL, body)
		}
		for node := range c.all {
			at(b, node)
			if resp, body := open(t, b, http.MethodGet, page, ""); resp.StatusCode != 200 || !strings.Contains(body, "email=test-user@zitadel.ch") {
				t.Errorf("%s: at node %d: status %d, %s", name, node, resp.StatusCode, body)
			}
		}
	}
}

// TestSignInsOfOneUserEnd makes the operator end sign-ins at one of two nodes.
func TestSignInsOfOneUserEnd(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startNodes(t, 0)
	port := freeport.Get(t)
	provider := signInWith(t, port)
	for i := range 2 {
		cfg := c.config(i)
		cfg.EdgeHTTPSListen, cfg.SignIn = net.JoinHostPort(cfg.PublicHost, strconv.Itoa(port)), provider
		c.all = append(c.all, startRelayWith(t, Options{Config: cfg}))
	}
	c.awaitWhole(c.all...)
	s := &site{testRelay: c.all[0]}
	a := connect(t, s.at(c.clientEverywhere("shop")), "i1")
	origin := startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			whoSite(w, r)
			return
		}
		if c, err := websocket.Accept(w, r, nil); err == nil {
			defer c.CloseNow()
			c.Read(r.Context())
		}
	}))
	page := a.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, origin).PublicURL + "/"
	s.setPolicy(t, "shop", `{"sign_in":{"provider":"company","anyone":true}}`)
	first, second, still := s.browser(t), s.browser(t), s.browser(t)
	for b, user := range map[*http.Client]string{first: "test-user@localhost", second: "test-user@localhost", still: "test-user2"} {
		if resp, body := signIn(t, b, page, user); resp.StatusCode != 200 {
			t.Fatalf("%s: status %d, %s", user, resp.StatusCode, body)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, page, &websocket.DialOptions{HTTPClient: first})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()

	if a, b := c.all[0].store.Ended.Store(), c.all[1].store.Ended.Store(); a == 0 || a != b {
		t.Errorf("of one store the nodes think that it is %d and %d", a, b)
	}
	// The other node is told, and this one hears of it.
	ended, err := c.all[1].operator().EndSignIns(t.Context(), " Test-User@Zitadel.ch ")
	if err != nil || ended.User != "test-user@zitadel.ch" {
		t.Fatalf("got %+v, %v", ended, err)
	}
	known := func(b *http.Client) bool {
		_, body := open(t, b, http.MethodGet, page, "")
		return strings.Contains(body, "user=")
	}
	eventually(t, "both browsers of the user are asked anew", func() bool { return !known(first) && !known(second) })
	if _, _, err := conn.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("what is open of the user: %v", err)
	}
	if !known(still) {
		t.Error("somebody else is asked anew, too")
	}
	if resp, body := signIn(t, first, page, "test-user@localhost"); resp.StatusCode != 200 || !known(first) || known(second) {
		t.Errorf("signed in again: status %d, %s", resp.StatusCode, body)
	}
	// By what the provider calls somebody it works as well.
	if _, err := c.all[0].operator().EndSignIns(t.Context(), "id2"); err != nil {
		t.Fatal(err)
	}
	if known(still) || !known(first) {
		t.Error("by the provider's own name another was ended, or nobody")
	}
	var actions []string
	if err := c.all[0].store.Audit.Newest(t.Context(), 0, func(e audit.Entry) bool {
		if e.Action == "sign_in.end" {
			actions = append(actions, e.Target)
		}
		return true
	}); err != nil || !slices.Equal(actions, []string{"id2", "test-user@zitadel.ch"}) {
		t.Errorf("the audit log has %q, %v", actions, err)
	}
	for _, user := range []string{"", " ", "a\nb", strings.Repeat("a", 321)} {
		if _, err := c.all[0].operator().EndSignIns(t.Context(), user); err == nil {
			t.Errorf("%q is taken for a user", user)
		}
	}
	without := startRelay(t, testConfig(t.TempDir()))
	if _, err := without.operator().EndSignIns(t.Context(), "ann@example.com"); err == nil || !strings.Contains(err.Error(), "no identity provider") {
		t.Errorf("without a provider: %v", err)
	}
}
