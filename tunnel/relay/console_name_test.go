package relay

import (
	"context"
	"net/http"
	"testing"

	"adit/tunnel/wire"
)

// TestConsolesNameIsNoClients: who serves the name of the console at the visitors' port is
// sent the cookie of an operator whose console is at another port of that name.
func TestConsolesNameIsNoClients(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Console.AllowedHosts = []string{"Console.Relay.test", "admin.ops.relay.test", "192.0.2.1"}
	r := startRelay(t, cfg)
	a := connect(t, r.client(t, "shop"), "i1")
	for _, name := range []string{"console", "console.relay.test", "admin.ops.relay.test"} {
		_, err := a.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: name}, "")
		if p := problem(t, err, wire.CodeForbidden); p.Field != "domain" {
			t.Errorf("%s: got %+v", name, p)
		}
	}
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "*.ops"}, startOrigin(t, text("shop")))
	v := &http.Client{Transport: &http.Transport{}}
	for name, want := range map[string]int{"other.ops.relay.test": http.StatusOK, "admin.ops.relay.test": http.StatusNotFound} {
		if code, body := r.page(t, v, name); code != want {
			t.Errorf("%s: got %d %q, want %d", name, code, body, want)
		}
	}

	// The operator may publish the console by a tunnel.
	_, token, err := r.Clients().Add(context.Background(), "operator", Scope{Domains: []string{"console"}})
	if err != nil {
		t.Fatal(err)
	}
	own := connect(t, token, "i2")
	own.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "console"}, startOrigin(t, text("console")))
	if code, body := r.page(t, v, "console.relay.test"); code != http.StatusOK || body != "console" {
		t.Errorf("the operator's own tunnel: got %d %q", code, body)
	}
	// A client that has the name may have it again, whatever it may have now.
	if _, err := r.store.Clients.SetScope(t.Context(), "operator", Scope{}, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client's scope is known", func() bool {
		c, _ := r.store.Clients.Get("operator")
		return len(c.Scope.Domains) == 0
	})
	own.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "console"}, startOrigin(t, text("console")))
}
