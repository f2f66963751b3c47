package names

import (
	"errors"
	"strings"
	"testing"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// held are the targets that clients have.
type held map[string]bool

func (h held) Get(target string) (claims.Claim, bool) { return claims.Claim{}, h[target] }

func rulesOf(claimed, policed []string) Rules {
	taken, policies := held{}, held{}
	for _, name := range claimed {
		taken[claims.TargetDomain(name)] = true
	}
	for _, name := range policed {
		policies[claims.TargetDomain(name)] = true
	}
	return Rules{
		Domain: "relay.test", Own: []string{"relay.test", "gate.relay.test", "sign-in.relay.test"}, SignIn: "sign-in.relay.test",
		Claims: taken, Policed: func(target string) bool { return policies[target] },
	}
}

func TestWildcardLeadsNamesThatAreNobodysByThemselves(t *testing.T) {
	r := rulesOf([]string{"*.shop.relay.test", "own.shop.relay.test", "*.relay.test"}, []string{"kept.shop.relay.test"})
	for name, want := range map[string]string{
		"any.shop.relay.test":  "*.shop.relay.test",
		"own.shop.relay.test":  "", // a client's by itself
		"kept.shop.relay.test": "", // whoever set its policy would not have it passed by
		"gate.relay.test":      "", // the relay's own
		"shop.relay.test":      "*.relay.test",
		"a.b.shop.relay.test":  "", // a wildcard is of one label
		"elsewhere.example":    "",
		"":                     "",
	} {
		if got := r.Leader(name); got != want {
			t.Errorf("%q is led by %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"any.shop.relay.test": "*.shop.relay.test", "own.shop.relay.test": "own.shop.relay.test",
		"sign-in.relay.test": "sign-in.relay.test", "gate.relay.test": "", "elsewhere.example": "", "": "",
	} {
		if got := r.Subject(name); got != want {
			t.Errorf("the certificate of %q is for %q, want %q", name, got, want)
		}
	}
}

func TestFullNames(t *testing.T) {
	r := rulesOf(nil, nil)
	for asked, want := range map[string]string{
		"shop": "shop.relay.test", "*.shop": "*.shop.relay.test", "shop.example": "shop.example", "*.shop.example": "*.shop.example", "a.relay.test": "a.relay.test",
	} {
		if got, err := r.Full(asked); got != want || err != nil {
			t.Errorf("%s means %q, %v; want %s", asked, got, err, want)
		}
	}
	for asked, code := range map[string]string{
		"-": wire.CodeInvalid, "a b": wire.CodeInvalid, "*": wire.CodeInvalid, "Shop": wire.CodeInvalid, "": wire.CodeInvalid,
		"relay.test": wire.CodeForbidden, "gate": wire.CodeForbidden, "*.relay.test": wire.CodeForbidden, "sign-in": wire.CodeForbidden,
	} {
		_, err := r.Full(asked)
		var p *wire.Problem
		if !errors.As(err, &p) || p.Code != code || p.Field != "domain" {
			t.Errorf("%q: %v, want %s about domain", asked, err, code)
		}
	}
}

// TestFullNamesOfARelayOfOneLabel uses a relay whose domain looks like a label.
func TestFullNamesOfARelayOfOneLabel(t *testing.T) {
	r := Rules{Domain: "localhost", Own: []string{"localhost"}, Claims: held{}, Policed: func(string) bool { return false }}
	if got, err := r.Full("shop"); got != "shop.localhost" || err != nil {
		t.Errorf("shop means %q, %v", got, err)
	}
	for _, asked := range []string{"localhost", "*.localhost"} {
		var p *wire.Problem
		if got, err := r.Full(asked); !errors.As(err, &p) || p.Code != wire.CodeForbidden {
			t.Errorf("%s means %q, %v; want %s", asked, got, err, wire.CodeForbidden)
		}
	}
}

// TestShownTargetsAreRead checks that whatever the operator is shown can be entered
// again.
func TestShownTargetsAreRead(t *testing.T) {
	r := rulesOf(nil, nil)
	for text, shown := range map[string]string{
		" Shop. ": "shop.relay.test", "*.shop": "*.shop.relay.test", "shop.example": "shop.example",
		"tcp.20000": "tcp.20000", "UDP.53": "udp.53", "tcp.1": "tcp.1", "tcp.65535": "tcp.65535", "nas/ssh": "nas/ssh",
	} {
		target, err := r.Target(text)
		if err != nil || Shown(target) != shown {
			t.Errorf("%q is shown as %q, %v; want %q", text, Shown(target), err, shown)
			continue
		}
		if again, err := r.Target(Shown(target)); again != target || err != nil {
			t.Errorf("%q is read as %q, %v; want %q", Shown(target), again, err, target)
		}
	}
	for text, says := range map[string]string{
		"tcp.0": "1 to 65535", "udp.65536": "1 to 65535", "a/": "CLIENT/NAME", "/b": "CLIENT/NAME", "a b": "neither a domain", "": "neither a domain",
	} {
		if _, err := r.Target(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func TestValidNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "shop.example": true, "xn--bcher-kva.example": true, "1.a": true,
		"": false, "1.2": false, "A": false, "-a": false, "a-": false, "a..b": false, "a_b": false, ".a": false, "a.": false,
		strings.Repeat("a", 64): false, strings.Repeat("a.", 127): false,
		strings.Repeat("a.", 126) + "a": true, strings.Repeat("a.", 126) + "aa": false,
	} {
		if got := Valid(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
