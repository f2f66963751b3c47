package edge

import (
	"net/netip"
	"testing"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// TestWhoIsLetInUnread covers connections and flows whose bytes are not inspected.
func TestWhoIsLetInUnread(t *testing.T) {
	private := routing.Face{Target: claims.TargetPrivate("nas", "ssh"), Slot: claims.SlotPrivate, Type: wire.TypeTCP, Mode: wire.ModePrivate}
	public := routing.Face{Target: claims.TargetPort("tcp", 2222), Slot: claims.SlotPort, Type: wire.TypeTCP, Mode: wire.ModeStandard}
	one := []string{"192.0.2.1"}
	for name, c := range map[string]struct {
		face    routing.Face
		policy  *policy.Document
		guest   *visitor.Guest
		stopped bool
		refused string
		in      bool
	}{
		"no policy":                {face: public, in: true},
		"one of others":            {face: public, policy: &policy.Document{Deny: []string{"192.0.2.2"}}, in: true},
		"refused":                  {face: public, policy: &policy.Document{Deny: one}, refused: policy.RuleDeny},
		"refused in shadow mode":   {face: public, policy: &policy.Document{Deny: one, Shadow: true}, refused: shadowed + policy.RuleDeny, in: true},
		"no traffic left":          {face: public, stopped: true, refused: policy.RuleQuota},
		"invited":                  {face: private, guest: &visitor.Guest{Client: "laptop", ClientID: "l"}, in: true},
		"of the client's own":      {face: private, guest: &visitor.Guest{Client: "nas", ClientID: "n"}, in: true},
		"not invited any more":     {face: private, guest: &visitor.Guest{Client: "phone", ClientID: "p"}, refused: policy.RuleVisitors},
		"invited, and not allowed": {face: private, guest: &visitor.Guest{Client: "laptop", ClientID: "l"}, policy: &policy.Document{Deny: one}, refused: policy.RuleDeny},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Config{Policy: func(string) *policy.Policy {
				if c.policy == nil {
					return nil
				}
				return policy.New(*c.policy, nil)
			}})
			account := new(shape.Account)
			b := &routing.Backend{Key: "k", Visitors: []string{"laptop"}, Agent: &routing.Agent{ClientID: "n", Account: account}}
			ep, err := e.table.Attach(c.face, b) // without its port
			if err != nil {
				t.Fatal(err)
			}
			e.Stop(account, c.stopped)
			refused, in, release := e.guardRaw(ep, &visitor.Conn{Addr: netip.MustParseAddrPort("192.0.2.1:1"), Guest: c.guest})
			release()
			if refused != c.refused || in != c.in {
				t.Errorf("refused by %q, let in: %v; want %q, %v", refused, in, c.refused, c.in)
			}
		})
	}
}

// TestAConnectionThatHasEndedMakesRoom uses a policy that admits one connection at a time.
func TestAConnectionThatHasEndedMakesRoom(t *testing.T) {
	p := policy.New(policy.Document{Connections: 1}, nil)
	e := New(Config{Policy: func(string) *policy.Policy { return p }})
	ep, v := new(routing.Endpoint), &visitor.Conn{Addr: netip.MustParseAddrPort("192.0.2.1:1")}
	_, first, release := e.guardRaw(ep, v)
	refused, second, none := e.guardRaw(ep, v)
	none()
	if !first || second || refused != policy.RuleConnections {
		t.Errorf("let in: %v and %v; the second is refused by %q", first, second, refused)
	}
	release()
	if refused, in, _ := e.guardRaw(ep, v); !in {
		t.Errorf("when the first has ended, the next is refused by %q", refused)
	}
}
