package relay

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// TestPortInUseForAMomentStaysTheTunnels makes another program take a tunnel's port while
// its agent is away, whether or not the tunnel asks for that port.
func TestPortInUseForAMomentStaysTheTunnels(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	a := connect(t, token, "i1")
	given := a.mustClaim("k", wire.Claim{Type: wire.TypeTCP}, "").RemotePort
	a.close()
	addr := fmt.Sprintf("127.0.0.1:%d", given)
	var other net.Listener
	eventually(t, "the port is closed", func() bool {
		var err error
		other, err = net.Listen("tcp", addr)
		return err == nil
	})
	a = connect(t, token, "i1")
	for _, asked := range []int{0, given} {
		_, err := a.claim("k", wire.Claim{Type: wire.TypeTCP, RemotePort: asked}, "")
		p := problem(t, err, wire.CodeUnavailable) // which is tried again
		if p.Field != "remote_port" || !strings.Contains(p.Message, fmt.Sprintf("the tcp port %d", given)) {
			t.Errorf("asked for %d: got %+v", asked, p)
		}
	}
	other.Close()
	if g := a.mustClaim("k", wire.Claim{Type: wire.TypeTCP}, ""); g.RemotePort != given {
		t.Errorf("got port %d, had %d", g.RemotePort, given)
	}
}
