package relay

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// TestNamesBesideEachOtherAreGivenToOneClientAtTwoNodes gives two clients names, one of
// which is under the other, at two nodes. Each node has already checked and seen nothing
// of the other's name.
func TestNamesBesideEachOtherAreGivenToOneClientAtTwoNodes(t *testing.T) {
	c := startNodes(t, 2)
	c.awaitWhole(c.all...)
	pair := [][2]string{{"shop", "*.shop"}, {"*.blog", "a.blog"}, {"x.deep", "deep"}}
	var sessions [2]*session
	for i, name := range []string{"first", "second"} {
		connect(t, c.all[i].at(c.clientEverywhere(name)), "i1")
		sessions[i] = c.all[i].roster.All()[0]
	}
	for _, names := range pair {
		var got [2]error
		var both sync.WaitGroup
		for i, s := range sessions {
			both.Go(func() {
				name := names[i] + ".relay.test"
				s.claiming.Lock()
				defer s.claiming.Unlock()
				_, got[i] = s.open(t.Context(), placing{
					key: names[i], claim: wire.Claim{Type: wire.TypeHTTP, Mode: wire.ModeStandard}, scope: scope.Scope{},
				}, routing.Face{Slot: claims.SlotPlain, Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: name, Target: claims.TargetDomain(name)})
			})
		}
		both.Wait()
		refused := 0
		for _, err := range got {
			var p *wire.Problem
			if err == nil {
				continue
			}
			if refused++; !errors.As(err, &p) || p.Code != wire.CodeTaken || !strings.Contains(p.Message, "and so are the names above and below it") {
				t.Errorf("%q: got %v", names, err)
			}
		}
		if refused != 1 {
			t.Errorf("%q: %d were refused, want one: %v", names, refused, got)
		}
		for i, err := range got {
			_, there := c.all[i].store.Claims.Get(claims.TargetDomain(names[i] + ".relay.test"))
			if there != (err == nil) {
				t.Errorf("%s: refused with %v, and its claim is there: %v", names[i], err, there)
			}
		}
	}
}
