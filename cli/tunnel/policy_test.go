package tunnel

import (
	"strings"
	"testing"

	"adit/localapi/client"
)

// TestPolicyDoesNotSteerTheScreen has the relay say what a terminal would obey.
func TestPolicyDoesNotSteerTheScreen(t *testing.T) {
	var b strings.Builder
	writePolicy(&b, client.TunnelPolicy{Policy: map[string]any{"allow": "\u009b2J\u202e"}, SetBy: "ops\x1b[2J"})
	if got := b.String(); strings.ContainsAny(got, "\x1b\u009b\u202e") {
		t.Errorf("got %q", got)
	}
}
