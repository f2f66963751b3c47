package relay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/names"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// privateClaim returns a private tunnel with a name, and with clients that may visit it
// in addition to its own.
func privateClaim(name string, visitors ...string) wire.Claim {
	return wire.Claim{Type: wire.TypeTCP, Mode: wire.ModePrivate, Domain: name, Visitors: visitors}
}

// visit asks for a visit and returns its stream, with a reader for what comes from the
// tunnel.
func (a *fakeAgent) visit(tunnel string) (link.Stream, *bufio.Reader, error) {
	s, r, _, err := a.visitBy(tunnel, wire.UpgradeVisit)
	return s, r, err
}

// visitBy is visit with a choice of protocol. It also returns the header of the relay's
// answer.
func (a *fakeAgent) visitBy(tunnel, upgrade string) (link.Stream, *bufio.Reader, http.Header, error) {
	a.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := a.session.OpenStream(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	a.tb.Cleanup(func() { s.Reset(); s.Close() })
	req, err := http.NewRequest(http.MethodPost, "http://relay"+wire.PathVisit+tunnel, http.NoBody)
	if err != nil {
		return nil, nil, nil, err
	}
	req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {upgrade}}
	if err := req.Write(s); err != nil {
		return nil, nil, nil, err
	}
	s.SetReadDeadline(time.Now().Add(patience))
	r := bufio.NewReader(s)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, nil, nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return s, r, resp.Header, nil
	}
	defer resp.Body.Close()
	var p wire.Problem
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
		return nil, nil, nil, err
	}
	return nil, nil, nil, &p
}

// greets starts an origin that speaks first, as ssh does, and sends back what it received
// once the visitor has ended.
func greets(tb testing.TB) string {
	tb.Helper()
	return serveEach(tb, func(conn net.Conn) {
		io.WriteString(conn, "hello\n")
		told, err := io.ReadAll(conn)
		if err == nil {
			conn.Write(told)
		}
	})
}

func mustVisit(tb testing.TB, a *fakeAgent, tunnel string) (link.Stream, *bufio.Reader) {
	tb.Helper()
	s, r, err := a.visit(tunnel)
	if err != nil {
		tb.Fatalf("visit %s: %v", tunnel, err)
	}
	if line, err := r.ReadString('\n'); line != "hello\n" {
		tb.Fatalf("visit %s: the service's greeting is %q, %v", tunnel, line, err)
	}
	return s, r
}

func refusedVisit(tb testing.TB, a *fakeAgent, tunnel string) string {
	tb.Helper()
	_, _, err := a.visit(tunnel)
	var p *wire.Problem
	if !errors.As(err, &p) || p.Code != wire.CodeForbidden {
		tb.Fatalf("visit %s: %v, want a refusal", tunnel, err)
	}
	return p.Message
}

func TestInvitedClientsVisitAPrivateTunnel(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "nas")
	owner := connect(t, token, "i1")
	own, laptop, stranger := connect(t, token, "i2"), connect(t, r.client(t, "laptop"), "i1"), connect(t, r.client(t, "stranger"), "i1")
	got := owner.mustClaim("t", privateClaim("ssh", "laptop"), greets(t))
	if got.PublicURL != "adit://nas/ssh" || got.Domain != "ssh" || got.RemotePort != 0 {
		t.Errorf("granted %+v", got)
	}
	for _, visitor := range []*fakeAgent{own, laptop} {
		s, answer := mustVisit(t, visitor, "nas/ssh")
		io.WriteString(s, "what was sent before the end")
		if err := s.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if told, err := io.ReadAll(answer); string(told) != "what was sent before the end" || err != nil {
			t.Errorf("the service answered %q, %v after the visitor's end", told, err)
		}
	}
	// There is nothing to learn from the two refusals.
	is, isNot := refusedVisit(t, stranger, "nas/ssh"), refusedVisit(t, stranger, "nas/rdp")
	if strings.ReplaceAll(is, "nas/ssh", "T") != strings.ReplaceAll(isNot, "nas/rdp", "T") {
		t.Errorf("a tunnel that is there is told from one that is not: %q, %q", is, isNot)
	}
	if err := laptop.call(http.MethodGet, wire.PathVisit+"nas/ssh", nil, nil); err != nil {
		t.Errorf("may laptop visit: %v", err)
	}
	if err := stranger.call(http.MethodGet, wire.PathVisit+"nas/ssh", nil, nil); err == nil {
		t.Error("a stranger is told that it may visit")
	}
}

// invitations returns the private tunnels that the relay announces to an agent.
func (a *fakeAgent) invitations() string {
	a.tb.Helper()
	var got wire.Invitations
	if err := a.call(http.MethodGet, wire.PathInvitations, nil, &got); err != nil {
		a.tb.Fatal(err)
	}
	return strings.Join(got.Tunnels, " ")
}

// TestAnAgentIsToldWhatItMayVisit checks that an agent is told of others' running tunnels
// for as long as it is invited.
func TestAnAgentIsToldWhatItMayVisit(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "nas")
	owner := connect(t, token, "i1")
	own, laptop, stranger := connect(t, token, "i2"), connect(t, r.client(t, "laptop"), "i1"), connect(t, r.client(t, "stranger"), "i1")
	owner.mustClaim("a", privateClaim("ssh", "laptop"), greets(t))
	owner.mustClaim("b", privateClaim("rdp"), greets(t))
	owner.mustClaim("c", wire.Claim{Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: "open"}, greets(t))
	stranger.mustClaim("a", privateClaim("files", wire.AnyClient), greets(t))
	check := func(who string, a *fakeAgent, want string) {
		t.Helper()
		if got := a.invitations(); got != want {
			t.Errorf("%s is told of %q, want %q", who, got, want)
		}
	}
	check("the owner", owner, "stranger/files")
	check("another agent of its client", own, "nas/rdp nas/ssh stranger/files")
	check("who is named", laptop, "nas/ssh stranger/files")
	check("a stranger", stranger, "")
	owner.mustClaim("a", privateClaim("ssh"), greets(t))
	if err := owner.call(http.MethodDelete, wire.PathClaims+"b", nil, nil); err != nil {
		t.Fatal(err)
	}
	check("another agent of the client, after", own, "nas/ssh stranger/files")
	check("who is named no longer", laptop, "stranger/files")
}

// TestVisitsOfARelayThatListensEverywhere covers a relay whose own address has no family,
// or a different one from the visitor's.
func TestVisitsOfARelayThatListensEverywhere(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.TunnelListen = ":0"
	r := startRelay(t, cfg)
	owner := connect(t, r.client(t, "nas"), "i1")
	owner.mustClaim("t", privateClaim("ssh"), greets(t))
	mustVisit(t, owner, "nas/ssh")
}

func TestAPrivateTunnelHasNoPublicPort(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.TCPPorts = "" // none are given at all
	r := startRelay(t, cfg)
	owner := connect(t, r.client(t, "nas"), "i1")
	given := owner.mustClaim("t", privateClaim(""), greets(t))
	if !strings.HasPrefix(given.PublicURL, "adit://nas/") || len(given.Domain) < 8 {
		t.Errorf("granted %+v, want a name that cannot be guessed", given)
	}
	if again := owner.mustClaim("t", privateClaim(""), greets(t)); again.Domain != given.Domain {
		t.Errorf("it is called %s and then %s", given.Domain, again.Domain)
	}
	for _, ep := range r.edge.Endpoints() {
		if ep.Port != 0 || ep.Slot != claims.SlotPrivate {
			t.Errorf("endpoint %+v", ep.Face)
		}
	}
}

func TestClaimsOfPrivateTunnels(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	owner, other := connect(t, r.client(t, "nas"), "i1"), connect(t, r.client(t, "nas2"), "i1")
	owner.mustClaim("t", privateClaim("ssh"), "")
	other.mustClaim("t", privateClaim("ssh"), "") // it is a name of the client's own
	for field, c := range map[string]wire.Claim{
		"type":        {Type: wire.TypeHTTP, Mode: wire.ModePrivate},
		"remote_port": {Type: wire.TypeTCP, Mode: wire.ModePrivate, RemotePort: 22000},
		"domain":      privateClaim("ssh.relay.test"),
		"visitors":    {Type: wire.TypeTCP, Mode: wire.ModeStandard, Visitors: []string{"laptop"}},
	} {
		_, err := owner.claim("bad", c, "")
		var p *wire.Problem
		if !errors.As(err, &p) || p.Code != wire.CodeInvalid || p.Field != field {
			t.Errorf("%+v: %v, want a fault of %s", c, err, field)
		}
	}
	_, err := owner.claim("bad", privateClaim("x", "Lap top"), "")
	var p *wire.Problem
	if !errors.As(err, &p) || p.Field != "visitors" {
		t.Errorf("visitors that cannot be clients: %v", err)
	}
	if _, err := owner.claim("second", privateClaim("ssh"), ""); err == nil {
		t.Error("two tunnels of a client have one private name")
	}
}

// TestVisitsEndWithTheRight checks that visits end with the invitation, the policy, the
// tunnel, and the client.
func TestVisitsEndWithTheRight(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	owner, laptop := connect(t, r.client(t, "nas"), "i1"), connect(t, r.client(t, "laptop"), "i1")
	origin := greets(t)
	ends := func(what string, s link.Stream, answer io.Reader) {
		t.Helper()
		s.SetReadDeadline(time.Now().Add(patience))
		if rest, err := io.ReadAll(answer); err == nil || errors.Is(err, context.DeadlineExceeded) || len(rest) > 0 {
			t.Errorf("%s: the visit ended with %q, %v", what, rest, err)
		}
	}
	owner.mustClaim("t", privateClaim("ssh", "laptop"), origin)
	s, answer := mustVisit(t, laptop, "nas/ssh")
	owner.mustClaim("t", privateClaim("ssh", "laptop", "phone"), origin)
	if _, err := s.Write([]byte("still there")); err != nil || laptop.session.Err() != nil {
		t.Fatalf("a visit ended by an invitation of another: %v", err)
	}
	owner.mustClaim("t", privateClaim("ssh", "phone"), origin)
	ends("taken from the visitors", s, answer)
	refusedVisit(t, laptop, "nas/ssh")

	owner.mustClaim("t", privateClaim("ssh", wire.AnyClient), origin)
	s, answer = mustVisit(t, laptop, "nas/ssh")
	if _, err := r.operator().SetPolicy(t.Context(), "nas/ssh", json.RawMessage(`{"deny":["127.0.0.0/8"]}`), nil); err != nil {
		t.Fatal(err)
	}
	ends("denied by a policy", s, answer)
	if err := r.operator().DeletePolicy(t.Context(), "nas/ssh", nil); err != nil {
		t.Fatal(err)
	}

	mustVisit(t, laptop, "nas/ssh")
	if _, err := r.Clients().Revoke(t.Context(), "laptop"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-laptop.session.Done():
	case <-time.After(patience):
		t.Error("the session of a revoked visitor goes on")
	}
	eventually(t, "its visit ends", func() bool { return owner.open.Load() == 0 })
}

func TestAVisitIsInTheAccessLogByItsClient(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	owner := connect(t, r.client(t, "nas"), "i1")
	laptop, stranger := connect(t, r.client(t, "laptop"), "i1"), connect(t, r.client(t, "stranger"), "i1")
	owner.mustClaim("t", privateClaim("ssh", "laptop"), greets(t))
	s, _ := mustVisit(t, laptop, "nas/ssh")
	s.Reset()
	refusedVisit(t, stranger, "nas/ssh")
	seen := map[string]string{}
	for len(seen) < 2 {
		e := owner.event(wire.EventAccess)
		seen[e.Access.User] = e.Access.Refused
	}
	if refused, ok := seen["laptop"]; !ok || refused != "" || seen["stranger"] != "visitors" {
		t.Errorf("the log says %v", seen)
	}
}

// TestVisitsAreNoControlStreams checks that visits, which last, do not use up the few
// control streams.
func TestVisitsAreNoControlStreams(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	owner, laptop := connect(t, r.client(t, "nas"), "i1"), connect(t, r.client(t, "laptop"), "i1")
	owner.mustClaim("t", privateClaim("ssh", "laptop"), greets(t))
	for range maxControlStreams + 10 {
		mustVisit(t, laptop, "nas/ssh")
	}
	if err := laptop.call(http.MethodPost, wire.PathErrors, []wire.AgentError{}, nil); err != nil {
		t.Errorf("the control plane does not answer beside visits: %v", err)
	}
}

// apart connects agents of the clients nas and laptop to two nodes.
func apart(t *testing.T) (c *testNodes, owner, visitor *fakeAgent) {
	t.Helper()
	c = startNodes(t, 2)
	nas, laptop := c.all[0].client(t, "nas"), c.all[0].client(t, "laptop")
	eventually(t, "the other node knows the clients", func() bool {
		_, one := c.all[1].store.Clients.Get("nas")
		_, two := c.all[1].store.Clients.Get("laptop")
		return one && two
	})
	return c, connect(t, c.all[0].at(nas), "i1"), connect(t, c.all[1].at(laptop), "i1")
}

func TestAPrivateTunnelIsVisitedByWayOfAnotherNode(t *testing.T) {
	c, owner, visitor := apart(t)
	origin := greets(t)
	owner.mustClaim("t", privateClaim("ssh", "laptop"), origin)
	eventually(t, "the other node leads there", func() bool {
		return visitor.call(http.MethodGet, wire.PathVisit+"nas/ssh", nil, nil) == nil
	})
	mustVisit(t, visitor, "nas/ssh")
	if got := visitor.invitations(); got != "nas/ssh" {
		t.Errorf("the other node tells of %q", got)
	}
	for _, node := range c.all {
		if _, body, _ := node.ask(t, "GET", "/api/v1/endpoints", "", map[string]string{"Authorization": "Bearer " + node.AdminToken()}); !strings.Contains(body, `"visitors":["laptop"]`) {
			t.Errorf("a node's console has %s", body)
		}
	}
	owner.mustClaim("t", privateClaim("ssh"), origin)
	eventually(t, "the visit ends with the invitation", func() bool { return owner.open.Load() == 0 })
}

func TestTargetsOfPrivateTunnels(t *testing.T) {
	for _, c := range []struct{ client, name string }{{"nas", "ssh"}, {"nas.home.arpa", "a-b"}} {
		target := claims.TargetPrivate(c.client, c.name)
		if client, name, ok := claims.PrivateOf(target); client != c.client || name != c.name || !ok {
			t.Errorf("%s is of %q, %q, %v", target, client, name, ok)
		}
		if claims.DomainOf(target) != "" {
			t.Errorf("%s is taken for a domain", target)
		}
		if _, _, port := claims.PortOf(target); port {
			t.Errorf("%s is taken for a port", target)
		}
		if got := names.Shown(target); got != c.client+"/"+c.name {
			t.Errorf("%s is shown as %s", target, got)
		}
	}
	for _, not := range []string{"private.", "private.nas", "private..ssh", "private.nas.", "domain.private.nas.ssh", "tcp.22"} {
		if client, name, ok := claims.PrivateOf(not); ok {
			t.Errorf("%s is taken for the private tunnel %s of %s", not, name, client)
		}
	}
}
