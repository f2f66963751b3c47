package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"adit/tunnel/relay/store/table"
)

// TestTunnelsTargetsAreFound has targets come to tunnels, go to others and be given
// back: what is found by tunnel is what the claims say.
func TestTunnelsTargetsAreFound(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	here := func(string, Holder) bool { return false }
	holder := func(instance, key string) Holder {
		return Holder{Slot: SlotPlain, Instance: instance, Key: key, Type: "http", Mode: "balanced"}
	}
	take := func(name, client string, h Holder) {
		t.Helper()
		if _, err := s.Claims.Take(ctx, TargetDomain(name), client, h, here); err != nil {
			t.Fatal(err)
		}
	}
	check := func(client, instance, key string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range s.Claims.OfTunnel(client, instance, key) {
			got = append(got, DomainOf(c.Target))
		}
		if !slices.Equal(got, want) {
			t.Errorf("tunnel %s of %s, %s: got %q, want %q", key, instance, client, got, want)
		}
	}
	take("a10.test", "c1", holder("i1", "k"))
	take("a2.test", "c1", holder("i1", "k"))
	take("a2.test", "c1", holder("i2", "k"))
	take("b.test", "c1", holder("i1", "other"))
	take("c.test", "c2", holder("i1", "k"))
	check("c1", "i1", "k", "a2.test", "a10.test")
	check("c1", "i2", "k", "a2.test")
	check("c1", "i1", "other", "b.test")
	check("c2", "i1", "k", "c.test")
	if n := s.Claims.Count(); n != 4 {
		t.Errorf("%d claims are counted, want 4", n)
	}
	if err := s.Claims.Release(ctx, TargetDomain("a2.test"), "c1", "i1", "k"); err != nil {
		t.Fatal(err)
	}
	check("c1", "i1", "k", "a10.test")
	check("c1", "i2", "k", "a2.test")
	if err := s.Claims.ReleaseClient(ctx, "c1"); err != nil {
		t.Fatal(err)
	}
	check("c1", "i1", "k")
	check("c1", "i2", "k")
	check("c2", "i1", "k", "c.test")
	if n := s.Claims.Count(); n != 1 || len(s.Claims.byTunnel) != 1 {
		t.Errorf("%d claims are counted and %d tunnels remembered, want one of each", n, len(s.Claims.byTunnel))
	}
}

// BenchmarkClaimsOfTunnel asks what a tunnel has of a client with ten thousand
// names, as each claim does.
func BenchmarkClaimsOfTunnel(b *testing.B) {
	s := open(b, b.TempDir())
	for i := range 10_000 {
		target := TargetDomain(fmt.Sprintf("n%d.test", i))
		text, err := json.Marshal(Claim{Target: target, ClientID: "c", Holders: []Holder{{Instance: "i", Key: fmt.Sprint(i)}}})
		if err != nil {
			b.Fatal(err)
		}
		s.Told(table.Change{Table: "claims", Key: target, Revision: uint64(i + 1), Value: text})
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(s.Claims.OfTunnel("c", "i", "77")) != 1 {
			b.Fatal("the tunnel's claim is not found")
		}
	}
}
