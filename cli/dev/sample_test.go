package dev

import (
	"net"
	"testing"
)

// TestDevKnowsWhetherItsPortIsServed: a newcomer who starts adit dev first and the
// web server later is told why the URLs do not show it.
func TestDevKnowsWhetherItsPortIsServed(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if !listens(t.Context(), ln.Addr().(*net.TCPAddr).Port) {
		t.Error("a port that is listened on was not found")
	}
	// The near end of a connection: nobody else can come to listen there.
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if listens(t.Context(), conn.LocalAddr().(*net.TCPAddr).Port) {
		t.Error("a port that nobody listens on was found")
	}
}
