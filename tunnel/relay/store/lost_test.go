package store

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/relay/store/scope"
)

func TestWriteWhoseAnswerIsLostIsDoneOnce(t *testing.T) {
	s := open(t, t.TempDir())
	kv := &natstest.Forgetful{}
	s.Usages = &Usages{over[Usage](t, s, "usage", func(of jetstream.KeyValue) jetstream.KeyValue { kv.KeyValue = of; return kv })}
	for range 2 {
		if _, err := s.Usages.Add(t.Context(), "c_1", "2026-05", Tally{In: 10, Out: 1}); err != nil {
			t.Fatal(err)
		}
		kv.Lose.Store(1) // of the second, which is an update
	}
	if got := s.Usages.Get("c_1", "2026-05"); got.In != 20 || got.Out != 2 {
		t.Errorf("got %d bytes in and %d out, want 20 and 2", got.In, got.Out)
	}
	_, rev, _ := s.Usages.table.Get("c_1")
	kv.Lose.Store(1)
	if err := s.Usages.table.Remove(t.Context(), "c_1", rev); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// cutOff is a bucket as a server serves it that leads no more and does not know:
// what it takes is never made, and of what it took it says that it is being changed.
type cutOff struct {
	jetstream.KeyValue
	taken atomic.Bool
}

func (c *cutOff) Update(context.Context, string, []byte, uint64) (uint64, error) {
	if c.taken.Swap(true) {
		return 0, jetstream.ErrKeyRevisionMismatch
	}
	return 0, context.DeadlineExceeded
}

// TestAChangeThatChangesNothingIsNotMadeByItself revokes a client that, according to a server
// that was cut off, is revoked already. Another client of that name may be active.
func TestAChangeThatChangesNothingIsNotMadeByItself(t *testing.T) {
	s := open(t, t.TempDir())
	if _, err := s.Clients.Add(t.Context(), "shop", secret(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Clients.Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	s.Clients = newClients(over[Client](t, s, "clients", func(kv jetstream.KeyValue) jetstream.KeyValue { return &cutOff{KeyValue: kv} }))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := s.Clients.Revoke(ctx, "shop"); !bucket.IsAway(err) {
		t.Errorf("a revocation that no server made: got %v, want that the store did not answer in time", err)
	}
}

// TestOpenWaitsForTheSettings has a cluster that has created a bucket but does not answer for
// it yet, having just started.
func TestOpenWaitsForTheSettings(t *testing.T) {
	s := open(t, t.TempDir())
	s.Settings.kv = &natstest.Unled{KeyValue: s.Settings.kv}
	if err := s.migration.run(t.Context(), s.Settings, s.log); err != nil {
		t.Error(err)
	}
	s.Settings.kv = &natstest.Unled{KeyValue: s.Settings.kv}
	if _, err := s.Settings.Get(t.Context(), "none"); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("a setting that there is not: %v", err)
	}
}

func TestClientIsChangedThoughTheWatchLags(t *testing.T) {
	s := open(t, t.TempDir())
	if _, err := s.Clients.Add(t.Context(), "shop", [32]byte{1}, "ab"); err != nil {
		t.Fatal(err)
	}
	behind := newClients(over[Client](t, s, "clients", deafened))
	if _, err := s.Clients.SetScope(t.Context(), "shop", scope.Scope{Tunnels: 3}, nil); err != nil {
		t.Fatal(err)
	}
	if c, ok := behind.Get("shop"); !ok || c.Scope.Tunnels != 0 {
		t.Fatalf("the watch does not lag: %+v, %t", c, ok)
	}
	c, err := behind.Rotate(t.Context(), "shop", [32]byte{2}, "cd", 0)
	if err != nil || c.Scope.Tunnels != 3 || c.Secrets[0].Hint != "cd" {
		t.Errorf("got %+v, %v, want the change of the other node and this one's", c, err)
	}
}

// slow is a bucket whose leader has taken another write, and makes it once the other
// servers are back: until then it refuses whatever names the revision of before, and
// shows that.
type slow struct {
	jetstream.KeyValue
	until time.Time
}

func (s *slow) Update(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	if time.Now().Before(s.until) {
		return 0, jetstream.ErrKeyRevisionMismatch
	}
	return s.KeyValue.Update(ctx, key, value, rev)
}

func (s *slow) Purge(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	if time.Now().Before(s.until) {
		return jetstream.ErrKeyRevisionMismatch
	}
	return s.KeyValue.Purge(ctx, key, opts...)
}

// TestAWriteIsNotInConflictWithOneThatIsUnderWay: a conflict would mean that the write has not
// been made, but the write in progress may be the same one, its first answer lost.
func TestAWriteIsNotInConflictWithOneThatIsUnderWay(t *testing.T) {
	s := open(t, t.TempDir())
	client, err := s.Clients.Add(t.Context(), "shop", secret(), "")
	if err != nil {
		t.Fatal(err)
	}
	_, account := s.Operators.Put(t.Context(), "account.a", []byte("1"), 0)
	for _, err := range []error{
		errOf(s.Clients.Add(t.Context(), "old", secret(), "")),
		errOf(s.Clients.Revoke(t.Context(), "old")),
		errOf(s.Claims.Take(t.Context(), "tcp.1", client.ID, claims.Holder{Slot: claims.SlotPort, Instance: "i", Key: "k"}, nil)),
		s.Policies.Set(t.Context(), "tcp.2", []byte(`{}`)),
		account,
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, revision, _ := s.Operators.Get("account.a")
	_, rev, _ := s.Clients.table.Get("shop")
	revoked := client
	revoked.Revoked, revoked.Secrets = time.Now().UTC(), nil
	data, err := json.Marshal(revoked)
	if err != nil {
		t.Fatal(err)
	}
	var held []*slow
	slows := func(kv jetstream.KeyValue) jetstream.KeyValue {
		held = append(held, &slow{KeyValue: kv})
		return held[len(held)-1]
	}
	s.Clients, s.Claims = newClients(over[Client](t, s, "clients", slows)), claims.New(over[claims.Claim](t, s, "claims", slows))
	s.Usages, s.Operators = &Usages{over[Usage](t, s, "usage", slows)}, &Operators{over[json.RawMessage](t, s, "operators", slows), nil}
	s.Policies = &Policies{over[StoredPolicy](t, s, "policies", slows), s.Claims, nil}
	clients, until := bucketOf(t, s, "clients"), time.Now().Add(700*time.Millisecond)
	for _, kv := range held {
		kv.until = until
	}
	var all sync.WaitGroup
	all.Go(func() {
		<-time.After(time.Until(until))
		if _, err := clients.Update(t.Context(), "shop", data, rev); err != nil {
			t.Error(err)
		}
	})
	for what, do := range map[string]func() error{
		"revoke":   func() error { return errOf(s.Clients.Revoke(t.Context(), "shop")) },
		"add anew": func() error { return errOf(s.Clients.Add(t.Context(), "old", secret(), "")) },
		"release":  func() error { return s.Claims.Release(t.Context(), "tcp.1", client.ID, "i", "k") },
		"take": func() error {
			return errOf(s.Claims.Take(t.Context(), "tcp.3", client.ID, claims.Holder{Slot: claims.SlotPort, Instance: "i", Key: "l"}, nil))
		},
		"create":  func() error { return errOf(s.Usages.Add(t.Context(), "c_1", "2026-05", Tally{In: 10})) },
		"policy":  func() error { return s.Policies.Claimed(t.Context(), "tcp.2", client.ID, true) },
		"account": func() error { return savedOf(s.Operators.Put(t.Context(), "account.a", []byte("2"), revision)) },
	} {
		all.Go(func() {
			if err := do(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	all.Wait()
	if c, _ := s.Clients.Get("shop"); c.Active() {
		t.Error("the client is active")
	}
	if c, ok := s.Clients.Get("old"); !ok || !c.Active() {
		t.Error("the client that was added anew is not active")
	}
	for _, p := range s.Policies.List() {
		if p.ClientID != client.ID {
			t.Errorf("the policy of %s is of %q, want %q", p.Target, p.ClientID, client.ID)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }

func savedOf(saved bool, err error) error {
	if err == nil && !saved {
		return bucket.ErrConflict
	}
	return err
}

// TestAWriteThatStaysUnderWayIsNotKnown checks that the outcome is reported as unknown, and
// not as a conflict.
func TestAWriteThatStaysUnderWayIsNotKnown(t *testing.T) {
	s := open(t, t.TempDir())
	if _, err := s.Clients.Add(t.Context(), "shop", secret(), ""); err != nil {
		t.Fatal(err)
	}
	var kv *slow
	s.Clients = newClients(over[Client](t, s, "clients", func(of jetstream.KeyValue) jetstream.KeyValue {
		kv = &slow{KeyValue: of, until: time.Now().Add(time.Hour)}
		return kv
	}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Clients.Revoke(ctx, "shop"); !bucket.IsAway(err) {
		t.Errorf("got %v, want that the store did not answer in time", err)
	}
	again, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := bucket.Replace(again, kv, "shop", []byte("{}")); !bucket.IsAway(err) {
		t.Errorf("replace: got %v, want that the store did not answer in time", err)
	}
}
