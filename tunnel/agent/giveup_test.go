package agent

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

// owns has the relay keep names and ports for the tunnels that it gave them to, as
// the real one does: until they are released, or the tunnel has another.
func (r *fakeRelay) owns() {
	kept := map[string]string{} // by what they are of
	r.set(func() {
		r.onClaim = func(key string, c wire.Claim) (no *wire.Problem) {
			r.set(func() {
				had, runs := r.claims[key]
				if !runs {
					delete(kept, key)
				}
				for other, name := range kept {
					if _, there := r.claims[other]; there && other != key && name == c.Domain && name != "" {
						no = &wire.Problem{Code: wire.CodeTaken, Message: "taken by another tunnel of this client", Field: "domain"}
					}
				}
				switch {
				case no != nil:
				case c.Domain != "":
					kept[key] = c.Domain
				case runs:
					kept[key] = had.Domain
				}
			})
			return no
		}
		r.onGrant = func(g *wire.Grant) {
			key := g.EndpointID[len("ep_"):]
			if kept[key] == "" {
				kept[key] = g.Domain
			}
			if g.RemotePort == 0 {
				c := r.claims[key]
				c.Domain = kept[key]
				r.claims[key] = c
				g.Domain = kept[key]
				g.PublicURL = c.Type + "://" + g.Domain
			}
		}
	})
}

func declareAll(t *testing.T, a *Agent, specs ...definition.Tunnel) {
	t.Helper()
	if err := a.Declare(t.Context(), specs); err != nil {
		t.Fatal(err)
	}
}

func wantURL(t *testing.T, a *Agent, id, url string) {
	t.Helper()
	eventually(t, "the tunnel runs at "+url, func() bool {
		got, _ := a.Tunnel(id)
		return got.State == TunnelRunning && got.PublicURL == url
	})
}

// Two or more declared tunnels exchange their names in one change of the file, while
// the daemon runs or before it starts again. The log tells of nothing to be done, as the
// first of them is refused only until the others have given theirs up.
func TestDeclaredTunnelsExchangeTheirNames(t *testing.T) {
	for name, restarted := range map[string]bool{"in a running daemon": false, "before a start": true} {
		t.Run(name, func(t *testing.T) {
			r := newFakeRelay(t)
			r.owns()
			dir := t.TempDir()
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			a, stop := configured(t, r, Config{StateDir: dir, Logger: logger})
			names := []string{"a.relay.test", "b.relay.test", "c.relay.test"}
			specs := make([]definition.Tunnel, 3)
			for i, name := range []string{"one", "two", "three"} {
				specs[i] = definition.Tunnel{Name: name, Domain: names[i], LocalPort: 80}
			}
			declareAll(t, a, specs...)
			for i := range specs {
				wantURL(t, a, declaredID(specs[i].Name), "https://"+names[i])
			}
			if restarted {
				stop()
				a, stop = startAgent(t, Config{StateDir: dir, Logger: logger})
			}
			for i := range specs {
				specs[i].Domain = names[(i+1)%3]
			}
			declareAll(t, a, specs...)
			for i := range specs {
				wantURL(t, a, declaredID(specs[i].Name), "https://"+names[(i+1)%3])
			}
			stop()
			if strings.Contains(log.String(), "not claimed") {
				t.Errorf("the log tells of what mends itself: %s", &log)
			}
		})
	}
}

// A tunnel whose domain is taken out gives the name back and gets another: it would
// have it until nobody knows why otherwise.
func TestTunnelWithoutItsDomainGetsAnotherName(t *testing.T) {
	for name, restarted := range map[string]bool{"in a running daemon": false, "before a start": true} {
		t.Run(name, func(t *testing.T) {
			r := newFakeRelay(t)
			r.owns()
			dir := t.TempDir()
			a, stop := configured(t, r, Config{StateDir: dir})
			want := definition.Tunnel{Name: "shop", Domain: "a.relay.test", LocalPort: 80}
			declareAll(t, a, want)
			id := declaredID("shop")
			wantURL(t, a, id, "https://a.relay.test")
			if restarted {
				stop()
				a, _ = startAgent(t, Config{StateDir: dir})
			}
			want.Domain = ""
			declareAll(t, a, want)
			wantURL(t, a, id, "https://random1.relay.test")
			if restarted {
				return
			}
			// What the relay gave is no name that it was told, and stays.
			want.LocalScheme = "https"
			want.Type = wire.TypeHTTP
			declareAll(t, a, want)
			wantURL(t, a, id, "http://random1.relay.test")
		})
	}
}

// The same for a tunnel that is changed by a request.
func TestChangeThatTakesADomainOutGivesAnotherName(t *testing.T) {
	r := newFakeRelay(t)
	r.owns()
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{Domain: "a.relay.test", LocalPort: 80})
	none := ""
	got, err := a.Change(t.Context(), tun.ID, definition.Patch{Domain: &none})
	if err != nil || got.PublicURL != "https://random1.relay.test" {
		t.Errorf("got %q, %v, want another name", got.PublicURL, err)
	}
}
