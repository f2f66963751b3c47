package relay

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// TestWhoMayNoLongerBeIsToldWhy makes requests wait for their answers while a policy, or
// a used-up monthly limit, stops letting their visitors in.
func TestWhoMayNoLongerBeIsToldWhy(t *testing.T) {
	began := make(chan struct{}, 1)
	s := startSiteOn(t, startRelayWith(t, Options{Config: testConfig(t.TempDir()), usageFlush: 20 * time.Millisecond}), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			io.WriteString(w, "as always")
			return
		}
		began <- struct{}{}
		<-r.Context().Done()
	}))
	deny := func() { s.setPolicy(t, "shop", `{"deny":["127.0.0.1"]}`) }
	stop := func() { s.rescope(t, "shop", scope.Scope{Monthly: 1, OverQuota: scope.OverStop}) }
	for version, v := range s.secureVisitors(t, s.testRelay) {
		for _, c := range []struct {
			rule, body string
			status     int
			change     func()
		}{
			{"deny", "", 403, deny},
			{"deny", "half", 403, deny},
			{"quota", "", 503, stop},
		} {
			s.setPolicy(t, "shop", `{}`)
			s.rescope(t, "shop", scope.Scope{})
			eventually(t, "visitors are let in", func() bool { status, _ := get(t, v, "https://shop.relay.test/"); return status == 200 })
			method, body := http.MethodGet, io.Reader(nil)
			unfinished, rest := io.Pipe()
			if c.body != "" {
				method, body = http.MethodPost, io.MultiReader(strings.NewReader(c.body), unfinished)
			}
			r, err := http.NewRequestWithContext(t.Context(), method, "https://shop.relay.test/waits", body)
			if err != nil {
				t.Fatal(err)
			}
			answered := make(chan *http.Response, 1)
			go func() {
				defer close(answered)
				if resp, err := v.Do(r); err == nil {
					answered <- resp
				}
			}()
			<-began
			c.change()
			resp := <-answered
			rest.Close()
			if resp == nil {
				t.Errorf("%s, %s %q: no answer", version, c.rule, c.body)
				continue
			}
			resp.Body.Close()
			if resp.StatusCode != c.status {
				t.Errorf("%s, %s %q: status %d, want %d", version, c.rule, c.body, resp.StatusCode, c.status)
			}
			recorded(t, s.Relay, version+", "+c.rule, func(e wire.Access) bool {
				return e.Path == "/waits" && e.Status == c.status && e.Refused == c.rule
			})
		}
	}
}
