package relay

import (
	"bytes"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"adit/internal/require"
	"adit/tunnel/wire"
)

const keptPortsEnv = "ADIT_TEST_KEPT_PORTS"

// TestPortsThatTheSystemKeepsAreToldApart runs a relay that may not open ports below
// 1024: this program again, in a network of its own.
func TestPortsThatTheSystemKeepsAreToldApart(t *testing.T) {
	if os.Getenv(keptPortsEnv) == "1" {
		relayWithoutTheRight(t)
		return
	}
	require.Root(t)
	for _, name := range []string{"setpriv", "ip"} {
		require.Tool(t, name)
	}
	cmd := exec.CommandContext(t.Context(), require.Tool(t, "unshare"), "--net",
		"setpriv", "--bounding-set", "-net_bind_service", "--inh-caps", "-net_bind_service",
		"sh", "-c", `ip link set lo up && exec "$0" -test.v -test.run "$1"`, os.Args[0], "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), keptPortsEnv+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("without the right: %v\n%s", err, out)
	}
}

func relayWithoutTheRight(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.TCPPorts, cfg.UDPPorts = "900-1025", "80-90"
	var log bytes.Buffer // written by New, and by what r's end waits for
	r := startRelayWith(t, Options{Config: cfg, Log: slog.New(slog.NewTextHandler(&log, nil))})
	a := connect(t, r.client(t, "shop"), "i1")

	_, err := a.claim("asked", wire.Claim{Type: wire.TypeTCP, RemotePort: 900}, "")
	want := "the relay may not open the tcp port 900: its system keeps that port; ask its operator, or choose another"
	if p := problem(t, err, wire.CodeForbidden); p.Field != "remote_port" || p.Message != want {
		t.Errorf("a port that is kept: got %s of field %q, want %s", p.Message, p.Field, want)
	}
	_, err = a.claim("udp", wire.Claim{Type: wire.TypeUDP}, "")
	want = "the relay may not open any of its udp ports, 80 to 90: its system keeps them; ask its operator"
	if p := problem(t, err, wire.CodeForbidden); p.Field != "type" || p.Message != want {
		t.Errorf("a range that is kept: got %s of field %q, want %s", p.Message, p.Field, want)
	}
	for _, key := range []string{"k1", "k2"} { // all that the relay may open
		if g := a.mustClaim(key, wire.Claim{Type: wire.TypeTCP}, ""); g.RemotePort < 1024 {
			t.Errorf("got port %d, want 1024 or 1025", g.RemotePort)
		}
	}
	if claims := r.store.Claims.List(); len(claims) != 2 {
		t.Errorf("refused claims are kept: %+v", claims)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`level=WARN msg="the system keeps public ports from the relay" key=tcp_ports ports=900-1023 `,
		`level=WARN msg="the system keeps public ports from the relay" key=udp_ports ports=80-90 `,
		`tcp_ports: 127.0.0.1:900 needs the right to open ports below 1024: `,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}
