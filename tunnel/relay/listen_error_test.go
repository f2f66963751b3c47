//go:build unix

package relay

import (
	"net"
	"strings"
	"testing"
)

// TestListenerThatDoesNotOpenSaysWhatToDo holds that an operator reads the key at
// fault and a way out, not only the system's words.
func TestListenerThatDoesNotOpenSaysWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, test := range map[string]struct{ addr, want string }{
		"taken":     {taken.Addr().String(), "another program has " + taken.Addr().String()},
		"not of us": {"192.0.2.1:0", "is not an address of this machine"},
	} {
		ln, err := listen("edge_http_listen", test.addr)
		if err == nil {
			ln.Close()
			t.Fatalf("%s: it opened", name)
		}
		if text := err.Error(); !strings.HasPrefix(text, "edge_http_listen: ") || !strings.Contains(text, test.want) {
			t.Errorf("%s: got %q, want %q", name, text, test.want)
		}
	}
}
