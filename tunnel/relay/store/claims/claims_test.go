package claims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/engine"
	"adit/tunnel/relay/store/table"
)

// store is a registry in a store that has nothing else.
type store struct {
	*Registry
	*table.Set
	bucket jetstream.KeyValue
	close  func()
}

func (s store) Close() { s.close() }

// open opens a store in a folder.
func open(tb testing.TB, dir string) store {
	tb.Helper()
	log := slog.New(slog.DiscardHandler)
	e, err := engine.Open(engine.Config{Dir: dir, Log: log})
	if err != nil {
		tb.Fatal(err)
	}
	set := table.NewSet(table.Config{Engine: e, Urgent: []string{"claims"}, Took: new(bucket.Meter), Log: log})
	life, end := context.WithCancel(context.Background())
	s := store{Set: set, close: sync.OnceFunc(func() { end(); set.Close(); e.Close() })}
	tb.Cleanup(s.close)
	t, err := table.Open[Claim](tb.Context(), life, set, "claims")
	if err != nil {
		tb.Fatal(err)
	}
	s.Registry = New(t)
	if s.bucket, err = e.Bucket(tb.Context(), "claims"); err != nil {
		tb.Fatal(err)
	}
	return s
}

func nobodyAway(string, Holder) bool { return false }
func allAway(string, Holder) bool    { return true }

// TestTunnelsTargetsAreFound gives targets to tunnels, moves them and releases them, and
// checks that the index by tunnel agrees with the claims.
func TestTunnelsTargetsAreFound(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	here := func(string, Holder) bool { return false }
	holder := func(instance, key string) Holder {
		return Holder{Slot: SlotPlain, Instance: instance, Key: key, Type: "http", Mode: "balanced"}
	}
	take := func(name, client string, h Holder) {
		t.Helper()
		if _, err := s.Take(ctx, TargetDomain(name), client, h, here); err != nil {
			t.Fatal(err)
		}
	}
	check := func(client, instance, key string, want ...string) {
		t.Helper()
		var got []string
		for _, c := range s.OfTunnel(client, instance, key) {
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
	if n := s.Count(); n != 4 {
		t.Errorf("%d claims are counted, want 4", n)
	}
	if err := s.Release(ctx, TargetDomain("a2.test"), "c1", "i1", "k"); err != nil {
		t.Fatal(err)
	}
	check("c1", "i1", "k", "a10.test")
	check("c1", "i2", "k", "a2.test")
	if err := s.ReleaseClient(ctx, "c1"); err != nil {
		t.Fatal(err)
	}
	check("c1", "i1", "k")
	check("c1", "i2", "k")
	check("c2", "i1", "k", "c.test")
	if n := s.Count(); n != 1 || len(s.byTunnel) != 1 {
		t.Errorf("%d claims are counted and %d tunnels remembered, want one of each", n, len(s.byTunnel))
	}
}

// BenchmarkClaimsOfTunnel looks up what a tunnel has, for a client with ten thousand names, as
// every claim does.
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
		if len(s.OfTunnel("c", "i", "77")) != 1 {
			b.Fatal("the tunnel's claim is not found")
		}
	}
}

func TestClaims(t *testing.T) {
	holder := func(instance, key, mode string) Holder {
		return Holder{Slot: SlotTLS, Instance: instance, Key: key, Type: "https", Mode: mode}
	}
	plain := holder("i1", "k2", "standard")
	plain.Slot = SlotPlain
	ephemeral := holder("i1", "k1", "standard")
	ephemeral.Ephemeral = true
	type attempt struct {
		client string
		holder Holder
		away   func(string, Holder) bool
		want   error
	}
	for _, c := range []struct {
		name     string
		attempts []attempt
		holders  int
	}{
		{"again by itself", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c1", holder("i1", "k1", "standard"), nobodyAway, nil}}, 1},
		{"by another client", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c2", holder("i2", "k1", "standard"), allAway, ErrTaken}}, 1},
		{"by another agent of the client", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c1", holder("i2", "k1", "standard"), nobodyAway, ErrTakenByOwn}}, 1},
		{"after that agent is away", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c1", holder("i2", "k1", "standard"), allAway, nil}}, 1},
		{"balanced joins", []attempt{{"c1", holder("i1", "k1", "balanced"), nobodyAway, nil}, {"c1", holder("i2", "k1", "balanced"), nobodyAway, nil}}, 2},
		{"balanced of another client", []attempt{{"c1", holder("i1", "k1", "balanced"), nobodyAway, nil}, {"c2", holder("i2", "k1", "balanced"), nobodyAway, ErrTaken}}, 1},
		{"modes do not mix", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c1", holder("i2", "k1", "balanced"), nobodyAway, ErrMode}}, 1},
		{"the other slot is free", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c1", plain, nobodyAway, nil}}, 2},
		{"the other slot of another client", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c2", plain, nobodyAway, ErrTaken}}, 1},
		{"a forgotten ephemeral", []attempt{{"c1", ephemeral, nobodyAway, nil}, {"c2", holder("i2", "k1", "standard"), allAway, nil}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir)
			target := TargetDomain("shop.example.com")
			for i, a := range c.attempts {
				if _, err := s.Take(t.Context(), target, a.client, a.holder, a.away); !errors.Is(err, a.want) {
					t.Errorf("attempt %d: got %v, want %v", i, err, a.want)
				}
			}
			s.Close()
			s = open(t, dir)
			got, ok := s.Get(target)
			if !ok || len(got.Holders) != c.holders {
				t.Errorf("after a restart: got %+v, want %d holders", got, c.holders)
			}
			if err := s.ReleaseClient(t.Context(), got.ClientID); err != nil {
				t.Fatal(err)
			}
			if _, ok := s.Get(target); ok {
				t.Error("it is still held after its release")
			}
			if _, err := s.Take(t.Context(), target, "c9", holder("i9", "k9", "standard"), nobodyAway); err != nil {
				t.Errorf("after its release: %v", err)
			}
		})
	}
}

func TestOneNameHasOneOwnerUnderRace(t *testing.T) {
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 16 {
		wg.Go(func() {
			h := Holder{Slot: SlotPort, Instance: fmt.Sprint(i), Key: "k", Mode: "standard"}
			if _, err := s.Take(t.Context(), TargetPort("tcp", 20000), fmt.Sprint("c", i), h, nobodyAway); err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d got the port, want 1", won)
	}
}

func TestTargetsNameWhatTheyAreMadeOf(t *testing.T) {
	for name, want := range map[string]string{
		"shop.example.com": "domain.shop.example.com", "*.shop.example.com": "domain._.shop.example.com", "localhost": "domain.localhost",
	} {
		if target := TargetDomain(name); target != want || DomainOf(target) != name {
			t.Errorf("%s: target %s, and back %s", name, target, DomainOf(target))
		}
	}
	for _, target := range []string{"tcp.22", "udp.53", "shop.example.com", ""} {
		if name := DomainOf(target); name != "" {
			t.Errorf("%q is of the domain %q", target, name)
		}
	}
}
