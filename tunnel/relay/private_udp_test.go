package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// privateUDP is a private tunnel of type udp.
func privateUDP(name string, visitors ...string) wire.Claim {
	c := privateClaim(name, visitors...)
	c.Type = wire.TypeUDP
	return c
}

// udpVisit is a visit of a private udp tunnel.
type udpVisit struct {
	by     *fakeAgent
	stream link.Stream
	number uint32
	packet uint16
}

// visitUDP asks for a visit of a udp tunnel.
func (a *fakeAgent) visitUDP(tunnel string) (*udpVisit, error) {
	a.tb.Helper()
	s, r, header, err := a.visitBy(tunnel, wire.UpgradeVisitUDP)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(header.Get(wire.HeaderFlow), 10, 32)
	if err != nil || r.Buffered() > 0 {
		return nil, fmt.Errorf("a flow %w with %d bytes behind it", err, r.Buffered())
	}
	return &udpVisit{by: a, stream: s, number: uint32(number)}, nil
}

func mustVisitUDP(tb testing.TB, a *fakeAgent, tunnel string) *udpVisit {
	tb.Helper()
	v, err := a.visitUDP(tunnel)
	if err != nil {
		tb.Fatalf("visit %s: %v", tunnel, err)
	}
	v.echoes(tb, 10)
	return v
}

// echoes sends packets of a size until one has come back.
func (v *udpVisit) echoes(tb testing.TB, size int) {
	tb.Helper()
	v.packet++
	payload := strings.Repeat(strconv.Itoa(int(v.packet)%10), size)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		v.send(payload)
		select {
		case f := <-v.by.heard:
			if f.Number == v.number && string(f.Payload) == payload {
				return
			}
		case <-time.After(100 * time.Millisecond): // a packet may be lost
		}
	}
	tb.Fatalf("a packet of %d bytes does not come back", size)
}

func (v *udpVisit) send(payload string) {
	d := wire.Flow{Endpoint: wire.EndpointVisits, Number: v.number, Packet: v.packet, Payload: []byte(payload)}
	_, _ = wire.SplitFlow(nil, d, v.by.session.MaxDatagram(), v.by.session.SendDatagram)
}

// ends waits until the relay has ended the visit.
func (v *udpVisit) ends(tb testing.TB, what string) {
	tb.Helper()
	v.stream.SetReadDeadline(time.Now().Add(patience))
	if _, err := v.stream.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		tb.Errorf("%s: the visit goes on: %v", what, err)
	}
}

func TestInvitedClientsVisitAPrivateUDPTunnel(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "nas")
	owner := connect(t, token, "i1")
	own, laptop, stranger := connect(t, token, "i2"), connect(t, r.client(t, "laptop"), "i1"), connect(t, r.client(t, "stranger"), "i1")
	got := owner.mustClaim("t", privateUDP("game", "laptop"), "echo")
	if got.PublicURL != "adit://nas/game" || got.RemotePort != 0 {
		t.Errorf("granted %+v", got)
	}
	owner.mustClaim("tcp", privateClaim("ssh", "laptop"), greets(t))
	first, second := mustVisitUDP(t, own, "nas/game"), mustVisitUDP(t, laptop, "nas/game")
	for _, size := range []int{0, 1, 1200, 9000, 60000} {
		first.echoes(t, size)
		second.echoes(t, size)
	}
	mustVisitUDP(t, owner, "nas/game").echoes(t, 100) // by the session that the tunnel has
	if _, err := stranger.visitUDP("nas/game"); err == nil {
		t.Error("a stranger is let in")
	}
	var p *wire.Problem
	if _, err := laptop.visitUDP("nas/ssh"); !errors.As(err, &p) || p.Field != "type" || !strings.Contains(p.Message, "of type tcp") {
		t.Errorf("a tcp tunnel visited as udp: %v", err)
	}
	if _, _, err := laptop.visit("nas/game"); !errors.As(err, &p) || p.Field != "type" || !strings.Contains(p.Message, "of type udp") {
		t.Errorf("a udp tunnel visited as tcp: %v", err)
	}
	var told wire.Invitations
	if err := laptop.call(http.MethodGet, wire.PathInvitations, nil, &told); err != nil || strings.Join(told.Tunnels, " ") != "nas/game nas/ssh" || strings.Join(told.UDP, " ") != "nas/game" {
		t.Errorf("laptop is told of %+v, %v", told, err)
	}
	for _, ep := range r.edge.Endpoints() {
		if ep.Port != 0 {
			t.Errorf("endpoint %+v", ep.Face)
		}
	}
	if got := owner.clients(); got != "laptop nas nas" {
		t.Errorf("the tunnel's agent is told of visits by %q", got)
	}
}

// TestPacketsOfAVisitAreItsOwn checks this for two visits on one session, and for numbers
// that belong to no visit.
func TestPacketsOfAVisitAreItsOwn(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	owner, laptop := connect(t, r.client(t, "nas"), "i1"), connect(t, r.client(t, "laptop"), "i1")
	owner.mustClaim("t", privateUDP("game", "laptop"), "echo")
	first, second := mustVisitUDP(t, laptop, "nas/game"), mustVisitUDP(t, laptop, "nas/game")
	if first.number == second.number {
		t.Fatalf("both have the number %d", first.number)
	}
	for _, d := range []wire.Flow{
		{Endpoint: wire.EndpointVisits, Number: second.number + 1000, Payload: []byte("to nobody")},
		{Endpoint: 1, Number: first.number, Payload: []byte("as if it were an answer")},
		{Kind: wire.FlowWithheld, Endpoint: wire.EndpointVisits, Number: first.number},
	} {
		if d.Kind == 0 {
			d.Kind = wire.FlowWhole
		}
		if err := laptop.session.SendDatagram(wire.AppendFlow(nil, d)); err != nil {
			t.Fatal(err)
		}
	}
	second.echoes(t, 20)
	first.echoes(t, 30)
	first.stream.Close()
	second.echoes(t, 40)
}

// TestUDPVisitsEndWithTheRight checks that visits end with the invitation, the policy,
// the tunnel, the client, and when either side ends the flow.
func TestUDPVisitsEndWithTheRight(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	owner, laptop := connect(t, r.client(t, "nas"), "i1"), connect(t, r.client(t, "laptop"), "i1")
	counted := func(what string, open int64) {
		t.Helper()
		eventually(t, what, func() bool {
			for _, ep := range r.edge.Endpoints() {
				if ep.Counters().Open != open {
					return false
				}
			}
			return true
		})
	}
	owner.mustClaim("t", privateUDP("game", "laptop"), "echo")
	v := mustVisitUDP(t, laptop, "nas/game")
	owner.mustClaim("t", privateUDP("game", "laptop", "phone"), "echo")
	v.echoes(t, 20)
	counted("one visit is open", 1)
	owner.mustClaim("t", privateUDP("game", "phone"), "echo")
	v.ends(t, "taken from the visitors")
	counted("none is open then", 0)

	owner.mustClaim("t", privateUDP("game", wire.AnyClient), "echo")
	v = mustVisitUDP(t, laptop, "nas/game")
	if _, err := r.operator().SetPolicy(t.Context(), "nas/game", json.RawMessage(`{"deny":["127.0.0.0/8"]}`), nil); err != nil {
		t.Fatal(err)
	}
	v.ends(t, "denied by a policy")
	if _, err := laptop.visitUDP("nas/game"); err == nil {
		t.Error("who is denied by a policy is let in")
	}
	if err := r.operator().DeletePolicy(t.Context(), "nas/game", nil); err != nil {
		t.Fatal(err)
	}

	v = mustVisitUDP(t, laptop, "nas/game")
	owner.closing("t", v)
	v.ends(t, "ended by the tunnel's agent")

	v = mustVisitUDP(t, laptop, "nas/game")
	v.stream.Close()
	counted("a visit that its guest has ended is counted out", 0)

	v = mustVisitUDP(t, laptop, "nas/game")
	if err := owner.call(http.MethodDelete, wire.PathClaims+"t", nil, nil); err != nil {
		t.Fatal(err)
	}
	v.ends(t, "the tunnel is gone")

	owner.mustClaim("t", privateUDP("game", wire.AnyClient), "echo")
	v = mustVisitUDP(t, laptop, "nas/game")
	owner.close()
	v.ends(t, "the tunnel's session is gone")

	again := connect(t, r.client(t, "nas2"), "i1")
	again.mustClaim("t", privateUDP("game", wire.AnyClient), "echo")
	mustVisitUDP(t, laptop, "nas2/game")
	if _, err := r.Clients().Revoke(t.Context(), "laptop"); err != nil {
		t.Fatal(err)
	}
	<-laptop.session.Done()
	counted("the visit of a revoked client is over", 0)
}

// clients returns the clients whose flows the agent was told about.
func (a *fakeAgent) clients() string {
	var names []string
	a.whose.Range(func(_, who any) bool {
		names = append(names, who.(wire.From).Client)
		return true
	})
	slices.Sort(names)
	return strings.Join(names, " ")
}

// closing makes the agent end the flow of the only visit to a tunnel.
func (a *fakeAgent) closing(key string, v *udpVisit) {
	v.send("the agent learns the flow's number")
	select {
	case at := <-a.asked:
		_ = a.session.SendDatagram(wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowClose, Endpoint: at.Endpoint, Number: at.Number}))
	case <-time.After(patience):
		a.tb.Errorf("%s is not asked", key)
	}
}

func TestAUDPVisitIsInTheAccessLog(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	owner, laptop := connect(t, r.client(t, "nas"), "i1"), connect(t, r.client(t, "laptop"), "i1")
	owner.mustClaim("t", privateUDP("game", "laptop"), "echo")
	v, err := laptop.visitUDP("nas/game")
	if err != nil {
		t.Fatal(err)
	}
	v.echoes(t, 100)
	v.stream.Close()
	e := owner.event(wire.EventAccess).Access
	if e.User != "laptop" || e.Refused != "" || e.BytesIn < 100 || e.BytesOut < 100 || e.BytesOut > e.BytesIn || e.BytesIn%100 != 0 {
		t.Errorf("the log says %+v", e)
	}
}

func TestIdleUDPVisitsEnd(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.UDPIdle = "200ms"
	r := startRelay(t, cfg)
	owner, laptop := connect(t, r.client(t, "nas"), "i1"), connect(t, r.client(t, "laptop"), "i1")
	owner.mustClaim("t", privateUDP("game", "laptop"), "echo")
	v := mustVisitUDP(t, laptop, "nas/game")
	v.ends(t, "nothing passes")
}

// TestUDPVisitsDoNotHoldTheRelay checks that the relay does not wait for them when it
// ends, just as it does not for flows of public ports.
func TestUDPVisitsDoNotHoldTheRelay(t *testing.T) {
	r := startRelayDraining(t, testConfig(t.TempDir()), patience)
	owner, laptop := connect(t, r.client(t, "nas"), "i1"), connect(t, r.client(t, "laptop"), "i1")
	owner.mustClaim("t", privateUDP("game", "laptop"), "echo")
	v := mustVisitUDP(t, laptop, "nas/game")
	start := time.Now()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > patience/2 {
		t.Errorf("the relay took %v to end", took)
	}
	v.ends(t, "the relay has ended")
}

func TestAPrivateUDPTunnelIsVisitedByWayOfAnotherNode(t *testing.T) {
	_, owner, visitor := apart(t)
	owner.mustClaim("t", privateUDP("game", "laptop"), "echo")
	eventually(t, "the other node leads there", func() bool {
		return visitor.call(http.MethodGet, wire.PathVisit+"nas/game", nil, nil) == nil
	})
	v := mustVisitUDP(t, visitor, "nas/game")
	v.echoes(t, 5000)
	if got := owner.clients(); got != "laptop" {
		t.Errorf("the tunnel's agent is told of visits by %q", got)
	}
	owner.mustClaim("t", privateUDP("game"), "echo")
	v.ends(t, "taken from the visitors at another node")
}
