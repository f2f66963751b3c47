package relay

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// TestConnectionsThatAPolicyEndsLeaveOriginsInTurn ends a connection before its origin,
// one of two, has answered.
func TestConnectionsThatAPolicyEndsLeaveOriginsInTurn(t *testing.T) {
	var log lockedBuffer
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), Log: slog.New(slog.NewTextHandler(&log, nil))})
	token := r.client(t, "shop")
	a, b := connect(t, token, "i1"), connect(t, token, "i2")
	claim := wire.Claim{Type: wire.TypeTCP, Mode: wire.ModeBalanced}
	g := a.mustClaim("k", claim, originDeaf)
	claim.RemotePort = g.RemotePort
	b.mustClaim("k", claim, originDeaf)
	conn, err := net.Dial("tcp", hostOf(t, g.PublicURL))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, "an agent has the connection", func() bool { return a.deaf.Load()+b.deaf.Load() == 1 })
	if _, err := r.operator().SetPolicy(t.Context(), "tcp."+strconv.Itoa(g.RemotePort), []byte(`{"deny":["127.0.0.0/8"]}`), nil); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(patience))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the policy did not end the connection: %d, %v", n, err)
	}
	if strings.Contains(log.String(), "out of turn") {
		t.Errorf("the relay took an origin out of turn:\n%s", log.String())
	}
}
