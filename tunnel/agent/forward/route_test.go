package forward

import (
	"strings"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

func TestInspectorHidesWhatTheTunnelGivesItsOrigin(t *testing.T) {
	tun := NewTunnel("t", definition.Tunnel{LocalPort: 1, RequestHeaders: wire.ChangeHeaders(map[string]string{"x-origin-key": "a", "Cookie": ""})})
	if got := strings.Join(tun.route.Load().secret, " "); got != "Cookie X-Origin-Key" {
		t.Errorf("got %q", got)
	}
}
