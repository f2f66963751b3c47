package relay

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// TestQuotaHoldsWhileTheStoreIsAway lets several clients exceed their quota while nothing
// can be counted in the store. Each is stopped, however many other clients are waiting
// for the store.
func TestQuotaHoldsWhileTheStoreIsAway(t *testing.T) {
	server := natstest.Start(t)
	cfg := testConfig(t.TempDir())
	cfg.NATS.URLs = []string{server.URL()}
	r := startRelayWith(t, Options{Config: cfg, usageFlush: 200 * time.Millisecond})
	origin := startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 60_000)) }))
	v := r.visitor(t)
	var urls []string
	for i := range 5 {
		name := fmt.Sprint("shop", i)
		a := connect(t, r.scoped(t, name, scope.Scope{Monthly: 50_000, OverQuota: scope.OverStop}), "i")
		urls = append(urls, a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: name}, origin).PublicURL)
	}
	back := server.StreamAway("KV_adit_usage")
	defer back()
	for _, url := range urls {
		if status, _ := get(t, v, url); status != 200 {
			t.Fatalf("the first visitor of %s got status %d", url, status)
		}
	}
	// A write waits 12 s for the store; two of them are too long already.
	deadline := time.Now().Add(23 * time.Second)
	for _, url := range urls {
		for {
			// A visit that is under way when the month is used up breaks off.
			if resp, err := v.Get(url); err == nil {
				resp.Body.Close()
				if resp.StatusCode == http.StatusServiceUnavailable {
					break
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is visited on", url)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}
