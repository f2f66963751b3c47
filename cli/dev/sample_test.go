package dev

import (
	"net"
	"strings"
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

// TestDevsCommandsCanBePasted also where the folder for temporary files has a space.
func TestDevsCommandsCanBePasted(t *testing.T) {
	for file, want := range map[string]string{
		"/tmp/adit-dev-1/relay/ca.pem":                          "curl --cacert /tmp/adit-dev-1/relay/ca.pem https://",
		`C:\Users\Ann Lee\AppData\Local\Temp\adit-dev-1\ca.pem`: `curl --cacert "C:\Users\Ann Lee\AppData\Local\Temp\adit-dev-1\ca.pem" https://`,
	} {
		var out strings.Builder
		report := addresses{CAFile: file}
		report.PublicURLs.HTTPS = "https://sample.localhost"
		if report.print(&out, "a sample page"); !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %s in it", out.String(), want)
		}
	}
}
