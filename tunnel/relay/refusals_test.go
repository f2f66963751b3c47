package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// TestRefusalsSayWhatToDoNext checks the complete sentences: an agent shows them
// unchanged to its owner, who cannot see the relay.
func TestRefusalsSayWhatToDoNext(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.UDPPorts, cfg.Limits.TunnelsPerSession = "none", 3
	r := startRelay(t, cfg)
	first, last := r.tcp.First, r.tcp.Last
	free, other := connect(t, r.client(t, "free"), "i1"), connect(t, r.client(t, "other"), "i2")
	bound := connect(t, r.scoped(t, "bound", scope.Scope{
		Types: []string{"http", "tcp"}, Domains: []string{"shop", "shop-*"}, Ports: []string{fmt.Sprint(first)}, Tunnels: 1,
	}), "i3")
	other.mustClaim("a", wire.Claim{Type: wire.TypeHTTP, Domain: "taken"}, "")
	free.mustClaim("a", wire.Claim{Type: wire.TypeHTTP, Domain: "mine"}, "")
	free.mustClaim("b", wire.Claim{Type: wire.TypeHTTP, Domain: "many", Mode: wire.ModeBalanced}, "")
	for _, c := range []struct {
		agent *fakeAgent
		claim wire.Claim
		want  string
	}{
		{free, wire.Claim{Type: wire.TypeHTTP, Domain: "taken"}, "the name taken.relay.test is taken by another client; choose another"},
		{free, wire.Claim{Type: wire.TypeHTTP, Domain: "api.taken.relay.test"}, "the name taken.relay.test is taken by another client, and so are the names above and below it; choose another"},
		{free, wire.Claim{Type: wire.TypeHTTP, Domain: "mine"}, "the name mine.relay.test is taken by another tunnel of this client; choose another, or delete that tunnel"},
		{free, wire.Claim{Type: wire.TypeHTTP, Domain: "many"}, "the name many.relay.test is in use in another mode; choose that mode, or another name or port"},
		{free, wire.Claim{Type: wire.TypeHTTP, Domain: "relay.test"}, "relay.test is the relay's own name; choose another"},
		{free, wire.Claim{Type: wire.TypeHTTP, Domain: "a.example"}, "a.example is not under the relay's domain relay.test; choose a name that is, or ask the relay's operator"},
		{free, wire.Claim{Type: wire.TypeHTTP, RemotePort: 80}, "a tunnel of type http has no public port of its own; give it none"},
		{free, wire.Claim{Type: wire.TypeHTTP, HostHeader: "a b"}, `"a b" is not a host; write a name or an address, such as app.local or 192.0.2.1:8080`},
		{free, wire.Claim{Type: wire.TypeUDP}, "the relay gives no ports to tunnels of type udp; ask its operator for some"},
		{free, wire.Claim{Type: wire.TypeTCP, RemotePort: last + 1}, fmt.Sprintf("ports of type tcp are %d to %d here; choose one of them, or leave the port out and the relay gives one", first, last)},
		{bound, wire.Claim{Type: wire.TypeHTTPS}, "this client may have tunnels of the types http, tcp; choose one of them, or ask the relay's operator"},
		{bound, wire.Claim{Type: wire.TypeHTTP, Domain: "other"}, "this client may have the names shop, shop-*, not other.relay.test; choose one of them, or ask the relay's operator"},
		{bound, wire.Claim{Type: wire.TypeTCP, RemotePort: last}, fmt.Sprintf("this client may have the ports %d, not %d; choose one of them, or ask the relay's operator", first, last)},
	} {
		if c.claim.Mode == "" {
			c.claim.Mode = wire.ModeStandard
		}
		if _, err := c.agent.claim("k", c.claim, ""); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.claim, err, c.want)
		}
	}
	bound.mustClaim("a", wire.Claim{Type: wire.TypeHTTP}, "")
	free.mustClaim("c", wire.Claim{Type: wire.TypeHTTP}, "")
	for _, c := range []struct {
		agent *fakeAgent
		want  string
	}{
		{bound, "this client has reached its limit of tunnels, 1 of 1; stop one first, or ask the relay's operator for more"},
		{free, "an agent may have at most 3 tunnels here; stop one first, or ask the relay's operator for more"},
	} {
		if _, err := c.agent.claim("k", wire.Claim{Type: wire.TypeHTTP, Mode: wire.ModeStandard}, ""); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("one too many: got %v, want %q", err, c.want)
		}
	}
}

// TestAnotherVersionOfTheProtocolSaysWhichSideToUpdate checks this because the agent's
// owner can update only the agent.
func TestAnotherVersionOfTheProtocolSaysWhichSideToUpdate(t *testing.T) {
	for version, want := range map[int]string{
		wire.Protocol - 1: "the relay speaks a newer version of the protocol; update adit",
		wire.Protocol + 1: "the relay speaks an older version of the protocol; ask its operator to update it",
	} {
		if p := problem(t, new(session).authenticate(wire.Hello{Protocol: version}), wire.CodeProtocol); p.Message != want {
			t.Errorf("version %d: got %q, want %q", version, p.Message, want)
		}
	}
}

// TestRefusalsOfAFailureSayWhoseItIs checks the message; the details are in the relay's
// log and not meant for strangers.
func TestRefusalsOfAFailureSayWhoseItIs(t *testing.T) {
	s := &session{relay: startRelay(t, testConfig(t.TempDir())).Relay}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("store claims: %w", context.DeadlineExceeded), "the relay's store did not answer in time; try again in a moment"},
		{errors.New("a secret"), "something went wrong at the relay; ask its operator, who can find the cause in its log"},
	} {
		w := httptest.NewRecorder()
		s.refuse(w, c.err)
		var got wire.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusServiceUnavailable || got.Code != wire.CodeUnavailable || got.Message != c.want {
			t.Errorf("of %v: status %d, %+v, %v", c.err, w.Code, got, err)
		}
	}
}
