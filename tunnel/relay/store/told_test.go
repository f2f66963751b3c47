package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/table"
)

// TestWhatIsToldIsTakenByItsRevision has another node report writes in any order.
func TestWhatIsToldIsTakenByItsRevision(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Policies.Set(t.Context(), "domain.a", []byte(`{"now":1}`)); err != nil {
		t.Fatal(err)
	}
	_, rev, _ := s.Policies.table.Get("domain.a")
	heard := -1 // what is there comes first
	s.Policies.OnValues(func(string, StoredPolicy, bool) { heard++ })
	document := func() string {
		p, ok := s.Policies.Get("domain.a")
		if !ok {
			return "none"
		}
		return string(p.Document)
	}
	tell := func(rev uint64, text string) {
		c := table.Change{Table: "policies", Key: "domain.a", Revision: rev, Removed: text == ""}
		if text != "" {
			c.Value = []byte(`{"target":"domain.a","document":` + text + `}`)
		}
		s.Told(c)
	}
	for _, c := range []struct {
		rev         uint64
		value, want string
		heard       int
	}{
		{rev, `{"late":1}`, `{"now":1}`, 0},
		{rev + 2, `{"next":1}`, `{"next":1}`, 1},
		{rev + 1, `{"old":1}`, `{"next":1}`, 1},
		{rev + 1, "", `{"next":1}`, 1},
		{rev + 2, "", "none", 2},
		{rev + 2, `{"next":1}`, "none", 2},
		{rev + 4, `{"again":1}`, `{"again":1}`, 3},
	} {
		if tell(c.rev, c.value); document() != c.want || heard != c.heard {
			t.Errorf("told %q of revision %d: the policy is %s after %d changes, want %s after %d", c.value, c.rev, document(), heard, c.want, c.heard)
		}
	}
	for _, c := range []table.Change{{Table: "policies"}, {Table: "none", Key: "a", Revision: 1}, {Table: "policies", Key: "x", Revision: 9, Value: []byte("{")}} {
		s.Told(c)
	}
	if len(s.Policies.List()) != 1 || heard != 3 {
		t.Errorf("what does not parse was taken: %v", s.Policies.List())
	}
}

func TestOwnWritesAreTold(t *testing.T) {
	ns := startNATS(t, t.TempDir(), 0, nil)
	s := openAt(t, Config{URLs: []string{ns.ClientURL()}})
	var told []table.Change
	s.OnWrite(func(c table.Change) { told = append(told, c) })
	if _, err := s.Clients.Add(t.Context(), "shop", secret(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Clients.Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if err := s.Policies.Set(t.Context(), "domain.a", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if err := s.Policies.Delete(t.Context(), "domain.a"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Usages.Add(t.Context(), "c_1", "2026-05", Tally{In: 10, Out: 1}); err != nil {
		t.Fatal(err)
	}
	if len(told) != 4 || told[0].Table != "clients" || told[1].Revision <= told[0].Revision || !told[3].Removed || told[3].Key != "domain.a" {
		t.Errorf("told %+v", told)
	}
}

// TestPolicyNamesWhatItReplaces delays a write, as a hung server of the cluster would, until
// after another one has been made.
func TestPolicyNamesWhatItReplaces(t *testing.T) {
	s := open(t, t.TempDir())
	kv := &late{}
	if err := s.Policies.Set(t.Context(), "domain.a", []byte(`{"first":1}`)); err != nil {
		t.Fatal(err)
	}
	s.Policies = &Policies{over[StoredPolicy](t, s, "policies", func(of jetstream.KeyValue) jetstream.KeyValue { kv.KeyValue = of; return kv }), s.Claims, nil}
	kv.hold = true
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Policies.Set(ctx, "domain.a", []byte(`{"lost":1}`)); err == nil {
		t.Fatal("a write without an answer was acknowledged")
	}
	kv.hold = false
	if err := s.Policies.Set(t.Context(), "domain.a", []byte(`{"second":1}`)); err != nil {
		t.Fatal(err)
	}
	for _, write := range kv.held {
		if err := write(); err == nil {
			t.Error("a write that came late replaced a newer one")
		}
	}
	e, err := kv.Get(t.Context(), "domain.a")
	if err != nil || !strings.Contains(string(e.Value()), "second") {
		t.Errorf("the policy is %s, %v", e.Value(), err)
	}
}

// late is a bucket that keeps writes back.
type late struct {
	jetstream.KeyValue
	hold bool
	held []func() error
}

func (l *late) keep(ctx context.Context, write func(context.Context) (uint64, error)) (uint64, error) {
	if !l.hold {
		return write(ctx)
	}
	l.held = append(l.held, func() error { _, err := write(context.Background()); return err })
	<-ctx.Done()
	return 0, ctx.Err()
}

func (l *late) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return l.keep(ctx, func(ctx context.Context) (uint64, error) { return l.KeyValue.Put(ctx, key, value) })
}

func (l *late) Update(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	return l.keep(ctx, func(ctx context.Context) (uint64, error) { return l.KeyValue.Update(ctx, key, value, rev) })
}
