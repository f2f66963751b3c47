package relay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// TestUnreadAnswersKeepNoTunnel checks that an agent that does not read the relay's
// answers still loses its tunnels when its client may no longer have them.
func TestUnreadAnswersKeepNoTunnel(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("x")))
	var deny []string
	for i := range 2500 {
		deny = append(deny, fmt.Sprintf("10.%d.%d.1", i/250, i%250))
	}
	document, err := json.Marshal(map[string]any{"deny": deny})
	if err != nil {
		t.Fatal(err)
	}
	st, err := a.session.OpenStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for range 60 { // one behind the other, as HTTP/1.1 allows
			req, _ := http.NewRequest(http.MethodPut, "http://relay"+wire.PathPolicy+"k", bytes.NewReader(document))
			if req.Write(st) != nil {
				return
			}
		}
	}()
	defer func() { st.Reset(); <-writing }()
	changed := func() time.Time {
		p, _ := r.store.Policies.Get(claims.TargetDomain("shop.relay.test"))
		return p.Changed
	}
	// Until nothing more is changed: the answers take no more room.
	last, since := changed(), time.Now()
	for end := time.Now().Add(patience); last.IsZero() || time.Since(since) < time.Second; time.Sleep(10 * time.Millisecond) {
		if now := changed(); now != last {
			last, since = now, time.Now()
		}
		if time.Now().After(end) {
			t.Fatal("policies are set on and on")
		}
	}
	r.rescope(t, "shop", scope.Scope{Types: []string{"tcp"}})
	if e := a.event(wire.EventClaimLost); e.Key != "k" || !strings.Contains(e.Reason, "http") {
		t.Errorf("got %+v", e)
	}
}
