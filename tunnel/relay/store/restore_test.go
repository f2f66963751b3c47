package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/audit"
)

// broken is a bucket that does not take one key.
type broken struct {
	jetstream.KeyValue
	key string
}

var errBroken = errors.New("the bucket is broken")

func (b broken) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	if key == b.key {
		return 0, errBroken
	}
	return b.KeyValue.Create(ctx, key, value, opts...)
}

func (b broken) Update(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	if key == b.key {
		return 0, errBroken
	}
	return b.KeyValue.Update(ctx, key, value, rev)
}

// TestRestoreThatWasCutShortIsCompleted makes a restore fail twice, at different points,
// before it succeeds.
func TestRestoreThatWasCutShortIsCompleted(t *testing.T) {
	from := open(t, t.TempDir())
	ctx := t.Context()
	if _, err := from.Clients.Add(ctx, "shop", secret(), "hint"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.example", "b.example"} {
		if err := from.Proofs.Set(ctx, Proof{Domain: name, ClientID: "c1", Proved: time.Now().UTC()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, action := range []string{"one", "two"} {
		if _, err := from.Audit.Append(ctx, audit.Change{Action: action}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{SettingAuthority, SettingVisitorCA} {
		if err := from.Settings.Put(ctx, name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := from.Backup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	restoring := func() *Store {
		s, err := Open(ctx, Config{Dir: dir, Restoring: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, spoil := range []func(*Store){
		func(s *Store) {
			s.Proofs = &Proofs{over[Proof](t, s, "proofs", func(kv jetstream.KeyValue) jetstream.KeyValue { return broken{kv, "b.example"} })}
		},
		func(s *Store) { s.Settings.kv = broken{s.Settings.kv, SettingVisitorCA} },
	} {
		s := restoring()
		spoil(s)
		if err := s.Restore(ctx, b); !errors.Is(err, ErrPartial) || !errors.Is(err, errBroken) {
			t.Errorf("got %v, want an error about a part", err)
		}
		s.Close()
		if s, err := Open(ctx, Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "restore again") {
			t.Errorf("a relay opens a part of a backup: %v", err)
			if err == nil {
				s.Close()
			}
		}
	}
	s := restoring()
	other := b
	other.Clients = nil
	if err := s.Restore(ctx, other); err == nil || errors.Is(err, ErrPartial) {
		t.Errorf("another backup: %v", err)
	}
	if err := s.Restore(ctx, b); err != nil {
		t.Error(err)
	}
	if err := s.Restore(ctx, b); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("into a store that is restored: %v", err)
	}
	s.Close()
	again, err := open(t, dir).Backup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	again.Created = b.Created
	for _, p := range []*Backup{&b, &again} {
		slices.SortFunc(p.Proofs, func(a, b Proof) int { return strings.Compare(a.Domain, b.Domain) })
	}
	want, _ := json.Marshal(b)
	if got, _ := json.Marshal(again); !bytes.Equal(got, want) {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
