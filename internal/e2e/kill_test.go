package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/internal/freeport"
	"adit/tunnel/link"
)

// comeBack is the promise for a side that is there again, 5 s, and what a machine
// that does other things may add. Who asks for a relay in vain asks
// ever more seldom: the time for which it was away comes on top.
const comeBack = 20 * time.Second

// traffic asks for a URL until stopped, and counts.
type traffic struct {
	mu       sync.Mutex
	answered int
	wg       sync.WaitGroup
	end      chan struct{}
}

func startTraffic(client *http.Client, url string) *traffic {
	tr := &traffic{end: make(chan struct{})}
	for range 4 {
		tr.wg.Go(func() {
			for {
				select {
				case <-tr.end:
					return
				default:
				}
				if code, _, err := fetch(client, url); err == nil && code == http.StatusOK {
					tr.mu.Lock()
					tr.answered++
					tr.mu.Unlock()
				}
			}
		})
	}
	return tr
}

func (tr *traffic) stop() int {
	close(tr.end)
	tr.wg.Wait()
	return tr.answered
}

func answers(client *http.Client, url string) func() error {
	return func() error {
		code, body, err := fetch(client, url)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	}
}

func TestKilledRelayComesBackWithTheSameURLs(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	port := newOrigin(t)
	given := agent.publish("http", port, nil)
	chosen := agent.publish("https", port, map[string]any{"domain": "mine"})
	raw := agent.publish("tcp", port, nil)
	visitor := relay.visitor()
	visitor.Timeout = 10 * time.Second
	load := startTraffic(visitor, given.PublicURL)
	await(t, "traffic flows", answers(visitor, given.PublicURL))

	relay.proc.kill()
	killed := time.Now()
	await(t, "the daemon says that it is not connected, and why", func() error {
		s := agent.status()
		if s.Connected || s.State != "reconnecting" && s.State != "connecting" || s.LastError == nil || s.LastError == "" {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	agent.awaitTunnel(given.ID, "waiting")
	relay.start()
	away := time.Since(killed)
	back := agent.awaitConnected()
	for _, before := range []tunnel{given, chosen, raw} {
		if after := agent.awaitTunnel(before.ID, "running"); after.PublicURL != before.PublicURL {
			t.Errorf("public_url was %s and is %s", before.PublicURL, after.PublicURL)
		}
	}
	await(t, "the http tunnel answers", answers(visitor, given.PublicURL))
	await(t, "the https tunnel answers", answers(visitor, chosen.PublicURL))
	t.Logf("connected %v after the relay was there again, which was away for %v; %d answers in all", back, away, load.stop())
	if back > comeBack+away {
		t.Errorf("connected %v after the relay was there again, which was away for %v", back, away)
	}
}

// TestIdleDaemonIsToldOfAKilledRelay: a relay that is back before it was missed has its
// idle agents back at once. Nothing tells them over UDP but the relay, and they would
// not ask for ten seconds.
func TestIdleDaemonIsToldOfAKilledRelay(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	site := agent.publish("http", newOrigin(t), nil)
	visitor := relay.visitor()
	await(t, "the tunnel answers", answers(visitor, site.PublicURL))
	if s := agent.status(); s.Transport != "dtls" {
		t.Fatalf("the session's transport is %q, want dtls", s.Transport)
	}
	visitor.CloseIdleConnections()
	time.Sleep(2 * time.Second) // else it would be missed sooner, as something was under way

	relay.proc.kill()
	relay.start()
	back := await(t, "the tunnel answers again", answers(visitor, site.PublicURL))
	t.Logf("the tunnel answered %v after the relay was there again", back)
	if back > 5*time.Second {
		t.Errorf("the tunnel answered %v after the relay was there again, want a second or less", back)
	}
	if log := agent.proc.stderr.String(); !strings.Contains(log, "session lost") || !strings.Contains(log, link.ErrForgotten.Error()) {
		t.Errorf("the daemon's log does not say why the session ended:\n%s", log)
	}
}

func TestKilledDaemonComesBackWithTheSameURLs(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	port := newOrigin(t)
	given := agent.publish("http", port, nil)
	stopped := agent.publish("https", port, nil)
	agent.ok(http.StatusOK, "POST", "/api/v1/tunnels/"+stopped.ID+"/stop", nil, nil)
	visitor := relay.visitor()
	visitor.Timeout = 10 * time.Second
	load := startTraffic(visitor, given.PublicURL)
	await(t, "traffic flows", answers(visitor, given.PublicURL))

	agent.proc.kill()
	await(t, "the edge says that the tunnel is away", func() error {
		code, _, err := fetch(visitor, given.PublicURL)
		if err == nil && (code < 500 || code > 504) {
			err = fmt.Errorf("status %d", code)
		}
		return err
	})
	agent.start()
	back := agent.awaitConnected()
	if after := agent.awaitTunnel(given.ID, "running"); after.PublicURL != given.PublicURL {
		t.Errorf("public_url was %s and is %s", given.PublicURL, after.PublicURL)
	}
	agent.awaitTunnel(stopped.ID, "stopped")
	await(t, "the tunnel answers", answers(visitor, given.PublicURL))
	t.Logf("connected %v after the daemon was there again; %d answers in all", back, load.stop())
	if back > comeBack {
		t.Errorf("connected %v after the daemon was there again", back)
	}
}

func TestOriginThatIsDownIsNamed(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	port := freeport.Get(t)
	made := agent.publish("http", port, nil)
	code, body, err := fetch(relay.visitor(), made.PublicURL)
	if err != nil || code != http.StatusBadGateway {
		t.Fatalf("got %d, %v, want 502", code, err)
	}
	if !strings.Contains(body, "service is down") || strings.Contains(body, strconv.Itoa(port)) {
		t.Errorf("the page does not say that the service is down, or gives away its address:\n%s", body)
	}
	await(t, "the daemon's log says why", func() error {
		log, err := agent.tryCall(http.MethodGet, "/api/v1/logs", nil)
		if err == nil && (!strings.Contains(log.Raw, "visitor not served") || !strings.Contains(log.Raw, "nothing listens")) {
			err = fmt.Errorf("got %d %s", log.Status, log.Raw)
		}
		return err
	})
}

func TestStoppedRelayEndsInOrder(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	if code := relay.proc.stop(); code != 0 {
		t.Errorf("the relay ended with exit code %d after SIGTERM", code)
	}
	if code := agent.proc.stop(); code != 0 {
		t.Errorf("the daemon ended with exit code %d after SIGTERM", code)
	}
}
