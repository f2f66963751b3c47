package relay

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// TestTrailersReachOriginsByHTTP2 uses requests that are copied for their backend,
// because of another Host or a visitor's own connection.
func TestTrailersReachOriginsByHTTP2(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	origin := startH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		json.NewEncoder(w).Encode(r.Trailer)
	}))
	for name, claim := range map[string]wire.Claim{"plain": {}, "host": {HostHeader: "inner.example"}, "unshared": {Unshared: true}} {
		claim.Type, claim.Domain, claim.HTTP2 = wire.TypeHTTP, name, true
		g := s.agent.mustClaim(name, claim, origin)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, g.PublicURL, io.MultiReader(strings.NewReader("body")))
		req.Trailer = http.Header{"X-Sum": {"4"}}
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var got http.Header
		err = json.NewDecoder(resp.Body).Decode(&got)
		resp.Body.Close()
		if err != nil || fmt.Sprint(got) != "map[X-Sum:[4]]" {
			t.Errorf("%s: the origin got %v, %v", name, got, err)
		}
	}
}
