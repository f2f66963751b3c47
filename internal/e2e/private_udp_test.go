package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/internal/freeport"
)

// packetsReturn asks a UDP address, as often as it takes, for an answer to each of packets of
// these sizes.
func packetsReturn(conn net.Conn, sizes ...int) error {
	b := make([]byte, 1<<16)
	for _, size := range sizes {
		packet := strings.Repeat("p", size)
		if _, err := conn.Write([]byte(packet)); err != nil {
			return err
		}
		conn.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := conn.Read(b); err != nil || string(b[:n]) != packet {
			return fmt.Errorf("of %d bytes came %d, %v", size, n, err)
		}
	}
	return nil
}

// TestPrivateUDPTunnelsAreVisited: by a declared visit, by a command, over both
// transports and after a restart of the relay, and by nobody else.
func TestPrivateUDPTunnelsAreVisited(t *testing.T) {
	for _, transport := range []string{"dtls", "tls"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			privateUDPIsVisited(t, "[session]\ntransport = \""+transport+"\"\n")
		})
	}
}

func privateUDPIsVisited(t *testing.T, config string) {
	relay := newRelay(t)
	nas, laptop, stranger := newAgentWith(t, config), newAgentWith(t, config), newAgent(t)
	nas.configure(relay.client("nas"))
	laptop.configure(relay.client("laptop"))
	stranger.configure(relay.client("stranger"))
	made := nas.publish("udp", serveUDP(t, same), map[string]any{"mode": "private", "domain": "game", "visitors": []string{"laptop"}})
	if made.PublicURL != "adit://nas/game" {
		t.Errorf("its URL is %s", made.PublicURL)
	}
	declared := freeport.Loopback(t)
	laptop.declare(config+"[[visit]]\ntunnel = \"nas/game\"\ntype = \"udp\"\nlisten = %q\n", declared)
	commanded := freeport.Loopback(t)
	visit := launch(t, laptop.env, "visit", "nas/game", commanded)
	for what, addr := range map[string]string{"declared": declared, "commanded": commanded} {
		conn, err := net.Dial("udp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		await(t, what+": the visit is answered", func() error { return packetsReturn(conn, 1, 1200, 9000) })
	}
	var list struct {
		Items []struct {
			Tunnel, Type, State, Error string
			Connections                struct{ Open, Total int }
			Bytes                      struct{ In, Out int }
		}
	}
	laptop.ok(http.StatusOK, "GET", "/api/v1/visits", nil, &list)
	if len(list.Items) != 1 || list.Items[0].Type != "udp" || list.Items[0].State != "listening" || list.Items[0].Error != "" ||
		list.Items[0].Connections.Open != 1 || list.Items[0].Bytes.In < 10201 || list.Items[0].Bytes.Out < 10201 {
		t.Errorf("the visits are %+v", list.Items)
	}
	var passed struct{ Items []struct{ Client string } }
	await(t, "the inspector knows who visits", func() error {
		nas.ok(http.StatusOK, "GET", "/api/v1/requests", nil, &passed)
		if len(passed.Items) != 2 || passed.Items[0].Client != "laptop" || passed.Items[1].Client != "laptop" {
			return fmt.Errorf("it has %+v", passed.Items)
		}
		return nil
	})
	if code := visit.stop(); code != 0 {
		t.Errorf("the command ended with %d: %s", code, visit.stderr.String())
	}
	nas.publish("udp", serveUDP(t, same), map[string]any{"mode": "private", "domain": "voice", "visitors": []string{"*"}})
	if got := run(t, laptop.env, "visit"); got.code != 0 || !strings.Contains(got.stdout, "nas/voice") || !strings.Contains(got.stdout, "udp") {
		t.Errorf("of what may be visited, the command tells: exit %d, %q, %q", got.code, got.stdout, got.stderr)
	}
	if got := run(t, stranger.env, "visit", "nas/game"); got.code != 1 || !strings.Contains(got.stderr, "lets this client in") {
		t.Errorf("a stranger's visit: exit %d, %q", got.code, got.stderr)
	}
	if got := run(t, laptop.env, "visit", "nas/game", "--stdio"); got.code != 1 || !strings.Contains(got.stderr, "of type udp") {
		t.Errorf("a visit as of tcp: exit %d, %q", got.code, got.stderr)
	}
	conn, err := net.Dial("udp", declared)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for who, a := range map[string]*agent{"the visitor": laptop, "the owner": nas} {
		a.ok(http.StatusOK, "POST", "/api/v1/reconnect", nil, nil)
		await(t, "it is visited again after "+who+" has taken another session", func() error { return packetsReturn(conn, 100) })
	}
	relay.proc.kill()
	relay.start()
	await(t, "it is visited again after the relay was killed", func() error { return packetsReturn(conn, 100) })
	nas.proc.kill()
	nas.start()
	await(t, "it is visited again after its agent was killed", func() error { return packetsReturn(conn, 100) })
	laptop.proc.kill()
	laptop.start()
	await(t, "it is visited again after the visitor's agent was killed", func() error { return packetsReturn(conn, 100) })
	nas.ok(http.StatusOK, "PATCH", "/api/v1/tunnels/"+made.ID, map[string]any{"visitors": []string{}}, nil)
	await(t, "who is no longer named is cut off, and told why", func() error {
		if packetsReturn(conn, 100) == nil {
			return fmt.Errorf("it is answered")
		}
		laptop.ok(http.StatusOK, "GET", "/api/v1/visits", nil, &list)
		if len(list.Items) != 1 || !strings.Contains(list.Items[0].Error, "lets this client in") {
			return fmt.Errorf("the visits are %+v", list.Items)
		}
		return nil
	})
}
