package record

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"adit/internal/udpbatch"
)

// TestSessionsWithoutIDsOutliveFailedHandshakes: those from their addresses, which
// overlap and end in any order.
func TestSessionsWithoutIDsOutliveFailedHandshakes(t *testing.T) {
	for _, order := range [][]int{{0}, {0, 1}, {1, 0}, {0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			l, err := Listen(newMemNet().listen("192.0.2.1:4433"), serverConfig())
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			from := udpbatch.Addr{AddrPort: netip.MustParseAddrPort("198.51.100.1:1000")}
			old := newConn(l.cfg, false, l.sock, from)
			old.listener, old.firstAddr = l, from.AddrPort
			old.ready.Store(true)
			l.byAddr[from.AddrPort] = old
			defer old.finish(errClosed)
			var begun []*Conn
			for i := range order {
				c, _ := l.admit(hello{random: append([]byte{byte(i + 1)}, make([]byte, 31)...)}, from)
				if c == nil {
					t.Fatal("a handshake was not admitted")
				}
				begun = append(begun, c)
			}
			for _, i := range order {
				l.failed(begun[i], errors.New("it has failed"))
			}
			if got := l.byAddr[from.AddrPort]; got != old || old.Err() != nil {
				t.Errorf("its address leads to %p, want %p; it has ended with %v", got, old, old.Err())
			}
		})
	}
}
