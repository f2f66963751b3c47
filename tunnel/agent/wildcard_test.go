package agent

import (
	"errors"
	"strings"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

func TestWildcardsAreClaimedAsTheyAreMeant(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeatureWildcards)
	a, _ := configured(t, r, Config{})
	for domain, want := range map[string]string{
		"*.Shop": "*.shop", " *.shop.example.com. ": "*.shop.example.com", "*.bücher.example": "*.xn--bcher-kva.example",
	} {
		made := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: domain})
		if made.Domain != want {
			t.Errorf("%q: made %q, want %q", domain, made.Domain, want)
		}
		r.mu.Lock()
		if got := r.claims[made.ID].Domain; got != want {
			t.Errorf("%q: claimed %q, want %q", domain, got, want)
		}
		r.mu.Unlock()
	}
	for _, domain := range []string{"*", "*.", "*.*.shop", "*shop", "a*.shop", "*.1.2.3.4", "*.-a", "*." + strings.Repeat("a", 64)} {
		var no *refusal.Error
		if _, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 80, Domain: domain}); !errors.As(err, &no) || no.Code != refusal.CodeInvalidParameter || no.Field != "domain" {
			t.Errorf("%q: got %v", domain, err)
		}
	}
}

// TestARelayThatKnowsNoWildcardsIsNotAsked: it would say that such a name is none.
func TestARelayThatKnowsNoWildcardsIsNotAsked(t *testing.T) {
	r := newFakeRelay(t)
	r.does("another")
	a, _ := configured(t, r, Config{})
	var no *refusal.Error
	_, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 80, Domain: "*.shop"})
	if !errors.As(err, &no) || no.Code != refusal.CodeRelayRejected || no.Field != "domain" || !strings.Contains(no.Message, "all names below a domain") {
		t.Errorf("got %v", err)
	}
}
