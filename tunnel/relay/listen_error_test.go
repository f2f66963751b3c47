//go:build unix

package relay

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"adit/internal/freeport"
)

// TestListenerThatDoesNotOpenSaysWhatToDo checks that the operator is told which key is
// at fault and what to do, and not only the system's message.
func TestListenerThatDoesNotOpenSaysWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, test := range map[string]struct{ addr, want string }{
		"taken":     {taken.Addr().String(), "another program has TCP " + taken.Addr().String()},
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

// TestPortThatIsTakenForHTTP3SaysWhatToDo occupies only the UDP port, of an address that
// the system writes differently from the configuration.
func TestPortThatIsTakenForHTTP3SaysWhatToDo(t *testing.T) {
	port := strconv.Itoa(freeport.Get(t))
	taken, err := net.ListenPacket("udp", "0.0.0.0:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, addr := range []string{"0.0.0.0:" + port, ":" + port} {
		tcp, udp, err := listenBoth("edge_https_listen", addr)
		if err == nil {
			tcp.Close()
			udp.Close()
			t.Fatalf("%s: it opened", addr)
		}
		want := "edge_https_listen: another program has UDP " + addr + "; end it, set another edge_https_listen, or leave HTTP/3 out with http3 = false"
		if err.Error() != want {
			t.Errorf("got  %s\nwant %s", err, want)
		}
	}
}
