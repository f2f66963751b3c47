package relay

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"

	"adit/tunnel/wire"
)

// TestPolicyEndsConnectionsOfPortsThatWereGivenBack makes agents give ports back while
// visitors are connected, either for good or because another session takes over. The
// visitors stay until a policy says otherwise.
func TestPolicyEndsConnectionsOfPortsThatWereGivenBack(t *testing.T) {
	for name, query := range map[string]string{"for good": "", "with the claim kept": "?keep=1"} {
		t.Run(name, func(t *testing.T) {
			r := startRelay(t, testConfig(t.TempDir()))
			s := &site{testRelay: r}
			a := connect(t, r.client(t, "echo"), "i1")
			g := a.mustClaim("k", wire.Claim{Type: wire.TypeTCP}, startTCPEcho(t))
			c := echoed(t, hostOf(t, g.PublicURL))
			if err := a.call(http.MethodDelete, wire.PathClaims+"k"+query, nil, nil); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the port is closed", func() bool {
				other, err := net.Dial("tcp", hostOf(t, g.PublicURL))
				if err == nil {
					other.Close()
				}
				return err != nil
			})
			target := "tcp." + strconv.Itoa(g.RemotePort)
			s.setPolicy(t, target, `{"deny":["192.0.2.0/24"]}`)
			c.Write([]byte("x"))
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Fatalf("a connection that the policy permits: %v", err)
			}
			s.setPolicy(t, target, `{"deny":["127.0.0.0/8"]}`)
			if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection goes on: %v", err)
			}
		})
	}
}
