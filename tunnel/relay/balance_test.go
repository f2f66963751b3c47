package relay

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"adit/internal/freeport"
	"adit/tunnel/wire"
)

// TestOriginThatRefusesLeavesTheTurn stops one of two origins and starts it again. No
// request fails, and the origin gets its share back without help.
func TestOriginThatRefusesLeavesTheTurn(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "shared", Mode: wire.ModeBalanced}
	var probes atomic.Int64
	flaky := freeport.Loopback(t) // nothing listens there
	a := connect(t, token, "i1")
	g := a.mustClaim("k", claim, startOrigin(t, text("steady")))
	connect(t, token, "i2").mustClaim("k", claim, flaky)
	visitor := r.visitor(t)
	visitor.Transport.(*http.Transport).DisableKeepAlives = true
	for i := range 20 {
		if status, body := get(t, visitor, g.PublicURL); status != 200 || body != "steady" {
			t.Fatalf("request %d: status %d, %q", i, status, body)
		}
	}
	ln, err := net.Listen("tcp", flaky)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: text("flaky"), ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			probes.Add(1)
		}
	}}
	go server.Serve(ln)
	defer server.Close()
	eventually(t, "a probe finds the origin", func() bool { return probes.Load() > 0 })
	eventually(t, "it gets its share", func() bool { _, body := get(t, visitor, g.PublicURL); return body == "flaky" })
}

// TestBusyTunnelsGetFewerVisitors holds the requests to one of two tunnels open. The
// other one gets those that come in the meantime.
func TestBusyTunnelsGetFewerVisitors(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "shared", Mode: wire.ModeBalanced}
	release := make(chan struct{})
	var served [2]atomic.Int64
	var url string
	for i := range 2 {
		url = connect(t, token, fmt.Sprint("i", i)).mustClaim("k", claim, startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := served[i].Add(1)
			if r.URL.Path == "/hold" && n > 0 {
				w.WriteHeader(200)
				http.NewResponseController(w).Flush()
				select {
				case <-release:
				case <-r.Context().Done():
				}
			}
			fmt.Fprint(w, i)
		}))).PublicURL
	}
	visitor := r.visitor(t)
	resp, err := visitor.Get(url + "/hold")
	if err != nil {
		t.Fatal(err)
	}
	busy := 0
	if served[1].Load() == 1 {
		busy = 1
	}
	for range 10 {
		if _, body := get(t, visitor, url); body != fmt.Sprint(1-busy) {
			t.Errorf("tunnel %s is asked, and %d is busy", body, busy)
		}
	}
	close(release)
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	eventually(t, "both take turns again", func() bool { get(t, visitor, url); return served[busy].Load() > 1 })
}
