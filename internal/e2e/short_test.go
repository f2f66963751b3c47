package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// short runs a short form, and returns its tunnel once it runs.
func (a *agent) short(args ...string) (*process, tunnel) {
	a.t.Helper()
	p := launch(a.t, a.env, args...)
	only := a.awaitOnly(p, "")
	await(a.t, "the short form knows its tunnel", func() error {
		if out := p.stdout.String(); !strings.Contains(out, only.PublicURL) {
			return fmt.Errorf("it says %q", out)
		}
		return nil
	})
	return p, only
}

// awaitOnly waits until the daemon has one tunnel, another than that with the id
// not, and it runs.
func (a *agent) awaitOnly(p *process, not string) (only tunnel) {
	a.t.Helper()
	await(a.t, "the short form's tunnel runs", func() error {
		if p.ended() {
			a.t.Fatalf("the short form ended: %s", p.stderr.String())
		}
		all := a.tunnels()
		if len(all) != 1 || all[0].State != "running" || all[0].ID == not {
			return fmt.Errorf("the daemon has %+v", all)
		}
		only = all[0]
		return nil
	})
	return only
}

func (a *agent) tunnels() []tunnel {
	a.t.Helper()
	var list struct{ Items []tunnel }
	a.ok(http.StatusOK, "GET", "/api/v1/tunnels", nil, &list)
	return list.Items
}

func TestKilledShortFormLeavesNothingPublic(t *testing.T) {
	t.Parallel() // most of it is waiting
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	port := newOrigin(t)
	short, made := agent.short("http", fmt.Sprint(port))
	other := agent.publish("http", port, map[string]any{"ephemeral": true})
	visitor := relay.visitor()
	await(t, "the short form's tunnel answers", answers(visitor, made.PublicURL))

	short.kill()
	gone := await(t, "its tunnel is gone", func() error {
		if all := agent.tunnels(); len(all) != 1 || all[0].ID != other.ID {
			return fmt.Errorf("the daemon has %+v", all)
		}
		return nil
	})
	t.Logf("gone after %v", gone)
	await(t, "its address leads nowhere", func() error {
		code, _, err := fetch(visitor, made.PublicURL)
		if err == nil && code != http.StatusNotFound {
			err = fmt.Errorf("status %d", code)
		}
		return err
	})
	if err := answers(visitor, other.PublicURL)(); err != nil {
		t.Errorf("a tunnel that nobody held before: %v", err)
	}
}

func TestShortFormOutlivesTheDaemon(t *testing.T) {
	for name, end := range map[string]func(*process){
		"that is stopped": func(p *process) { p.stop() },
		"that is killed":  (*process).kill,
	} {
		t.Run(name, func(t *testing.T) {
			relay := newRelay(t)
			agent := newAgent(t)
			agent.configure(relay.client("laptop"))
			short, before := agent.short("http", fmt.Sprint(newOrigin(t)))
			end(agent.proc)
			agent.start()
			after := agent.awaitOnly(short, before.ID)
			await(t, "it answers again", answers(relay.visitor(), after.PublicURL))
			if after.PublicURL != before.PublicURL {
				t.Errorf("public_url was %s and is %s", before.PublicURL, after.PublicURL)
			}
			if code := short.stop(); code != 0 || strings.Contains(short.stderr.String(), "adit:") {
				t.Errorf("the short form ended with exit code %d and %s", code, short.stderr.String())
			}
			// What was being made in that moment is held by nobody, and goes a little later.
			await(t, "it leaves nothing", func() error {
				if all := agent.tunnels(); len(all) != 0 {
					return fmt.Errorf("it leaves %+v", all)
				}
				return nil
			})
		})
	}
}
