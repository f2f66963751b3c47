package machine

import (
	"net"
	"strings"
	"testing"
)

// TestWhoStartsTheDaemonIsToldWhereToGoOn: an address that is listened on is none to open
// where it is all of them.
func TestWhoStartsTheDaemonIsToldWhereToGoOn(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:37271": "http://127.0.0.1:37271;",
		"[::]:8181":       "http://127.0.0.1:8181;",
	} {
		addr, err := net.ResolveTCPAddr("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		if got := started(addr); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", listen, got, want)
		}
	}
}
