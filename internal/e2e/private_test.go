package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"adit/internal/freeport"
)

// TestPrivateTunnelsAreVisited: by a declared visit, by a command, and by nobody else.
func TestPrivateTunnelsAreVisited(t *testing.T) {
	relay := newRelay(t)
	nas, laptop, stranger := newAgent(t), newAgent(t), newAgent(t)
	nas.configure(relay.client("nas"))
	laptop.configure(relay.client("laptop"))
	stranger.configure(relay.client("stranger"))
	made := nas.publish("tcp", newEcho(t), map[string]any{"mode": "private", "domain": "echo", "visitors": []string{"laptop"}})
	if made.PublicURL != "adit://nas/echo" {
		t.Errorf("its URL is %s", made.PublicURL)
	}

	declared := freeport.Loopback(t)
	laptop.declare("[[visit]]\ntunnel = \"nas/echo\"\nlisten = %q\n", declared)
	commanded := freeport.Loopback(t)
	visit := launch(t, laptop.env, "visit", "nas/echo", commanded)
	for what, addr := range map[string]string{"declared": declared, "commanded": commanded} {
		await(t, what+": the visit listens", func() error {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err
		})
		echoesAfterTheEnd(t, what, addr)
	}
	var passed struct {
		Items []struct{ Client, State string }
	}
	await(t, "the inspector knows who visited", func() error {
		nas.ok(http.StatusOK, "GET", "/api/v1/requests", nil, &passed)
		if len(passed.Items) < 2 || passed.Items[0].Client != "laptop" {
			return fmt.Errorf("it has %+v", passed.Items)
		}
		return nil
	})
	var list struct {
		Items []struct{ Tunnel, Listen, State, Error string }
	}
	laptop.ok(http.StatusOK, "GET", "/api/v1/visits", nil, &list)
	if len(list.Items) != 1 || list.Items[0].State != "listening" || list.Items[0].Error != "" {
		t.Errorf("the visits are %+v", list.Items)
	}
	if code := visit.stop(); code != 0 {
		t.Errorf("the command ended with %d: %s", code, visit.stderr.String())
	}

	nas.publish("tcp", newEcho(t), map[string]any{"mode": "private", "domain": "files", "visitors": []string{"*"}})
	if got := run(t, laptop.env, "visit"); got.code != 0 || !strings.Contains(got.stdout, "nas/files") || strings.Count(got.stdout, "invited") != 1 {
		t.Errorf("of what may be visited, the command tells: exit %d, %q, %q", got.code, got.stdout, got.stderr)
	}
	if got := run(t, stranger.env, "visit", "nas/echo"); got.code != 1 || !strings.Contains(got.stderr, "lets this client in") {
		t.Errorf("a stranger's visit: exit %d, %q", got.code, got.stderr)
	}
	relay.proc.kill()
	relay.start()
	await(t, "it is visited again after the relay was killed", func() error {
		if got := laptop.call("GET", "/api/v1/visits/nas/echo", nil); got.Status != http.StatusOK {
			return fmt.Errorf("%s", got.Raw)
		}
		return nil
	})
}
