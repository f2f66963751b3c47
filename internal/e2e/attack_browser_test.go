package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"adit/internal/freeport"
)

// TestHostilePagesInABrowser has pages of other origins, and of a name that was
// rebound to the daemon, try all that a browser lets a page do.
func TestHostilePagesInABrowser(t *testing.T) {
	browse := browser(t)
	relay := newRelay(t)
	console := freeport.Get(t)
	open := newAgentWith(t, fmt.Sprintf("[local_api]\nallowed_origins = [\"http://127.0.0.1:%d\"]\n", console))
	open.configure(relay.client("laptop"))
	open.awaitDTLS() // its status is to be the same afterwards
	kept := open.publish("http", newOrigin(t), nil)
	before := open.settled()

	guarded := newAgentWith(t, "[local_api]\nbearer_token = \""+bearerToken+"\"\n")
	asOwner := http.Header{"Authorization": {"Bearer " + bearerToken}}
	_, answer := send(t, "POST", "http://"+guarded.listen+"/api/v1/login-links", "", asOwner)
	var link struct{ Data struct{ URL string } }
	decode(t, answer, &link)

	t.Log(browse("e2e:attack",
		"ADIT_WEB_UI=http://"+open.listen,
		fmt.Sprintf("ADIT_CONSOLE_PORT=%d", console),
		"ADIT_LOGIN_LINK="+link.Data.URL,
		"ADIT_AUTH_TOKEN="+relay.client("planted"),
	))

	// A session that was lost meanwhile, on a machine that stood still, comes back.
	await(t, "the open daemon is as it was", func() error {
		if after := open.settled(); after != before {
			return errorf("it was\n%s\nand is\n%s", before, after)
		}
		return nil
	})
	if got := open.awaitTunnel(kept.ID, "running"); got.PublicURL != kept.PublicURL {
		t.Errorf("the tunnel was %+v and is %+v", kept, got)
	}
	_, auth := send(t, "GET", "http://"+guarded.listen+"/api/v1/auth/status", "", asOwner)
	_, tunnels := send(t, "GET", "http://"+guarded.listen+"/api/v1/tunnels", "", asOwner)
	if !strings.Contains(auth, `"configured":false`) || !strings.Contains(tunnels, `"items":[]`) {
		t.Errorf("the guarded daemon was changed: %s %s", auth, tunnels)
	}
	// The attacks have to have reached the daemons at all.
	for _, a := range []*agent{open, guarded} {
		if _, figures := send(t, "GET", "http://"+a.listen+"/metrics", "", asOwner); refused(figures) < 20 {
			t.Errorf("%d requests were refused, want at least 20", refused(figures))
		}
	}
}

// TestHostilePagesInOtherBrowsers has the same pages try it in Firefox and WebKit,
// each of which has rules of its own for what a page may ask of loopback.
func TestHostilePagesInOtherBrowsers(t *testing.T) {
	for name, script := range map[string]string{"firefox": "e2e:attack", "webkit": "e2e:webkit:attack"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			browse := otherBrowser(t, name)
			relay := newRelay(t)
			console := freeport.Get(t)
			open := newAgentWith(t, fmt.Sprintf("[local_api]\nallowed_origins = [\"http://127.0.0.1:%d\"]\n", console))
			open.configure(relay.client("laptop"))
			open.awaitDTLS() // its status is to be the same afterwards
			before := open.settled()
			t.Log(browse(script,
				"ADIT_WEB_UI=http://"+open.listen,
				fmt.Sprintf("ADIT_CONSOLE_PORT=%d", console),
				"ADIT_AUTH_TOKEN="+relay.client("planted"),
			))
			await(t, "the daemon is as it was", func() error {
				if after := open.settled(); after != before {
					return errorf("it was\n%s\nand is\n%s", before, after)
				}
				return nil
			})
			if _, figures := send(t, "GET", "http://"+open.listen+"/metrics", "", nil); refused(figures) < 20 {
				t.Errorf("%d requests were refused, want at least 20", refused(figures))
			}
		})
	}
}

// settled is what nobody but the owner may change.
func (a *agent) settled() string {
	a.t.Helper()
	var all strings.Builder
	for _, path := range []string{"/api/v1/auth/status", "/api/v1/config"} {
		all.WriteString(a.call("GET", path, nil).Raw)
	}
	var list struct{ Items []tunnel }
	a.ok(http.StatusOK, "GET", "/api/v1/tunnels", nil, &list)
	fmt.Fprintf(&all, "%+v %+v", list, a.status())
	return all.String()
}

// refused counts the requests with status 4xx among the figures.
func refused(figures string) (n int) {
	for line := range strings.Lines(figures) {
		if strings.HasPrefix(line, "adit_local_api_requests_total{") && strings.Contains(line, `="4xx"`) {
			var one int
			if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &one); err == nil {
				n += one
			}
		}
	}
	return n
}
