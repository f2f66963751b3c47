package store

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/bucket"
)

// forgetful is a bucket that does a write and loses its answer.
type forgetful struct {
	jetstream.KeyValue
	lose atomic.Int32
}

func (f *forgetful) answer(rev uint64, err error) (uint64, error) {
	if err == nil && f.lose.Add(-1) >= 0 {
		return 0, context.DeadlineExceeded
	}
	return rev, err
}

func (f *forgetful) Update(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	return f.answer(f.KeyValue.Update(ctx, key, value, rev))
}

func (f *forgetful) Purge(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	_, err := f.answer(0, f.KeyValue.Purge(ctx, key, opts...))
	return err
}

func TestWriteWhoseAnswerIsLostIsDoneOnce(t *testing.T) {
	s := open(t, t.TempDir())
	kv := &forgetful{KeyValue: s.Usages.table.kv}
	s.Usages.table.kv = kv
	for range 2 {
		if _, err := s.Usages.Add(t.Context(), "c_1", "2026-05", Tally{In: 10, Out: 1}); err != nil {
			t.Fatal(err)
		}
		kv.lose.Store(1) // of the second, which is an update
	}
	if got := s.Usages.Get("c_1", "2026-05"); got.In != 20 || got.Out != 2 {
		t.Errorf("got %d bytes in and %d out, want 20 and 2", got.In, got.Out)
	}
	_, rev, _ := s.Usages.table.get("c_1")
	kv.lose.Store(1)
	if err := s.Usages.table.remove(t.Context(), "c_1", rev); err != nil {
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

// TestAChangeThatChangesNothingIsNotMadeByItself revokes a client that is revoked
// as far as a server knows that was cut off: another of that name may be active.
func TestAChangeThatChangesNothingIsNotMadeByItself(t *testing.T) {
	s := open(t, t.TempDir())
	if _, err := s.Clients.Add(t.Context(), "shop", secret(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Clients.Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	s.Clients.table.kv = &cutOff{KeyValue: s.Clients.table.kv}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := s.Clients.Revoke(ctx, "shop"); !bucket.IsAway(err) {
		t.Errorf("a revocation that no server made: got %v, want that the store did not answer in time", err)
	}
}

// unled is a bucket of a cluster that has nobody to answer for it at first.
type unled struct {
	jetstream.KeyValue
	asked atomic.Int32
}

func (u *unled) away() error {
	if u.asked.Add(1) <= 2 {
		return nats.ErrNoResponders
	}
	return nil
}

func (u *unled) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if err := u.away(); err != nil {
		return nil, err
	}
	return u.KeyValue.Get(ctx, key)
}

func (u *unled) WatchAll(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	if err := u.away(); err != nil {
		return nil, err
	}
	return u.KeyValue.WatchAll(ctx, opts...)
}

// TestOpenWaitsForEachBucket has a cluster that made a bucket and does not answer
// for it yet, as one that has just started.
func TestOpenWaitsForEachBucket(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Policies.Set(t.Context(), "domain.a", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	s.Settings.kv = &unled{KeyValue: s.Settings.kv}
	if err := s.migrate(t.Context(), s.migration); err != nil {
		t.Error(err)
	}
	s.Settings.kv = &unled{KeyValue: s.Settings.kv}
	if _, err := s.Settings.Get(t.Context(), "none"); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("a setting that there is not: %v", err)
	}
	life, end := context.WithCancel(t.Context())
	table, err := openTable[StoredPolicy](t.Context(), life, s, func(string) (jetstream.KeyValue, error) {
		return &unled{KeyValue: s.Policies.table.kv}, nil
	}, "again")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := table.get("domain.a"); !ok {
		t.Error("the policy was not read")
	}
	end()
	table.wait()
}

// leaving is a bucket whose first watch ends before it has brought anything, as
// one does whose server goes.
type leaving struct {
	jetstream.KeyValue
	asked atomic.Int32
}

func (l *leaving) WatchAll(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	w, err := l.KeyValue.WatchAll(ctx, opts...)
	if err == nil && l.asked.Add(1) == 1 {
		ended := make(chan jetstream.KeyValueEntry)
		close(ended)
		return endedWatch{w, ended}, nil
	}
	return w, err
}

type endedWatch struct {
	jetstream.KeyWatcher
	updates chan jetstream.KeyValueEntry
}

func (w endedWatch) Updates() <-chan jetstream.KeyValueEntry { return w.updates }

// TestOpenReadsAgainWhenAWatchEnds has the server go that a bucket is read from.
func TestOpenReadsAgainWhenAWatchEnds(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Policies.Set(t.Context(), "domain.a", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	life, end := context.WithCancel(t.Context())
	defer end()
	kv := &leaving{KeyValue: s.Policies.table.kv}
	table, err := openTable[StoredPolicy](t.Context(), life, s, func(string) (jetstream.KeyValue, error) { return kv, nil }, "again")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := table.get("domain.a"); !ok || kv.asked.Load() != 2 {
		t.Errorf("the policy was read: %v, in %d watches", ok, kv.asked.Load())
	}
	end()
	table.wait()
}

// miscounted is a bucket whose server has counted more than there is: the end of
// what it has is never told.
type miscounted struct {
	jetstream.KeyValue
	asked atomic.Int32
	loses bool // the first watch brings nothing at all
}

func (m *miscounted) WatchAll(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	w, err := m.KeyValue.WatchAll(ctx, opts...)
	if err != nil || m.asked.Add(1) > 1 && m.loses {
		return w, err
	}
	updates := make(chan jetstream.KeyValueEntry, 10)
	go func() {
		for e := range w.Updates() {
			if e != nil && !m.loses {
				updates <- e
			}
		}
	}()
	return endedWatch{w, updates}, nil
}

// TestABucketIsReadThoughItsEndIsNotTold opens a store on servers that count wrong.
func TestABucketIsReadThoughItsEndIsNotTold(t *testing.T) {
	t.Parallel() // most of it is waiting
	s := open(t, t.TempDir())
	if err := s.Policies.Set(t.Context(), "domain.a", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		loses   bool
		watches int32
	}{{false, 1}, {true, 2}} {
		kv := &miscounted{KeyValue: s.Policies.table.kv, loses: c.loses}
		ctx, cancel := context.WithTimeout(t.Context(), s.engine.Patience())
		life, end := context.WithCancel(t.Context())
		table, err := openTable[StoredPolicy](ctx, life, s, func(string) (jetstream.KeyValue, error) { return kv, nil }, "again")
		cancel()
		if err != nil {
			t.Fatalf("loses %t: %v", c.loses, err)
		}
		if _, _, ok := table.get("domain.a"); !ok || kv.asked.Load() != c.watches {
			t.Errorf("loses %t: the policy was read: %v, in %d watches", c.loses, ok, kv.asked.Load())
		}
		end()
		table.wait()
	}
}

func TestClientIsChangedThoughTheWatchLags(t *testing.T) {
	s := open(t, t.TempDir())
	if _, err := s.Clients.Add(t.Context(), "shop", [32]byte{1}, "ab"); err != nil {
		t.Fatal(err)
	}
	table := s.Clients.table
	table.mu.RLock()
	before := table.entries["shop"]
	table.mu.RUnlock()
	if _, err := s.Clients.SetScope(t.Context(), "shop", Scope{Tunnels: 3}, nil); err != nil {
		t.Fatal(err)
	}
	_, rev, _ := table.get("shop")
	for end := time.Now().Add(30 * time.Second); table.seen.Load() < rev; { // what is told twice would mend what follows
		if time.Now().After(end) {
			t.Fatal("the watch does not bring the change")
		}
		time.Sleep(time.Millisecond)
	}
	table.mu.Lock()
	table.entries["shop"] = before
	table.mu.Unlock()
	c, err := s.Clients.Rotate(t.Context(), "shop", [32]byte{2}, "cd", 0)
	if err != nil || c.Scope.Tunnels != 3 || c.Secrets[0].Hint != "cd" {
		t.Errorf("got %+v, %v, want the change of the other node and this one's", c, err)
	}
}

// found is what a bucket has under one key.
type found struct {
	jetstream.KeyValueEntry
	rev uint64
}

func (found) Key() string                     { return "c_1" }
func (found) Operation() jetstream.KeyValueOp { return jetstream.KeyValuePut }
func (k found) Revision() uint64              { return k.rev }
func (found) Value() []byte                   { v, _ := json.Marshal(Usage{ClientID: "c_1"}); return v }

func TestOneKeyDoesNotTellHowFarTheWatchIs(t *testing.T) {
	table := &table[Usage]{name: "usage", entries: map[string]entry[Usage]{}}
	if err := table.see(found{rev: 90}); err != nil {
		t.Fatal(err)
	}
	if err := table.take(found{rev: 100}); err != nil {
		t.Fatal(err)
	}
	if !table.knows(notice{Key: "c_2", Revision: 90}) || table.knows(notice{Key: "c_2", Revision: 95}) {
		t.Error("a write of another key between what the watch brought and what was read counts as known")
	}
}

// mute is a JetStream that writes and loses its answer.
type mute struct {
	jetstream.JetStream
	lose atomic.Int32
	lost func() // may be nil
}

func (m *mute) Publish(ctx context.Context, subject string, data []byte, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ack, err := m.JetStream.Publish(ctx, subject, data, opts...)
	if err == nil && m.lose.Add(-1) >= 0 {
		if m.lost != nil {
			m.lost()
		}
		return nil, context.DeadlineExceeded
	}
	return ack, err
}

// TestAuditEntryWhoseAnswerIsLostIsThereOnce loses the answer to one try, and to
// all of them: what is written later then is not written again.
func TestAuditEntryWhoseAnswerIsLostIsThereOnce(t *testing.T) {
	s := open(t, t.TempDir())
	js := &mute{JetStream: s.Audit.js}
	s.Audit.js = js
	js.lose.Store(1)
	if _, err := s.Audit.Append(t.Context(), audit.Change{Action: "one"}); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancel(t.Context())
	defer cancel()
	js.lost = cancel // so that there is no other try
	js.lose.Store(1)
	tried, err := s.Audit.Append(short, audit.Change{Action: "two", Target: "x"})
	if err == nil || tried.Seq != 2 {
		t.Fatalf("got %+v, %v, want the entry that was tried and an error", tried, err)
	}
	if _, err := s.Audit.Append(t.Context(), audit.Change{Action: "three"}); err != nil {
		t.Fatal(err)
	}
	late := Late{At: tried.Time, Action: "two", Target: "x", Tried: &tried}
	if e, err := s.Audit.AppendLate(t.Context(), late); err != nil || e.Seq != 0 {
		t.Errorf("what was written already: got %+v, %v", e, err)
	}
	late.Tried.Hash = audit.Root // another's
	if e, err := s.Audit.AppendLate(t.Context(), late); err != nil || e.Seq != 4 {
		t.Errorf("what was not: got %+v, %v", e, err)
	}
	if r, err := s.Audit.Verify(t.Context(), ""); err != nil || !r.OK || r.Entries != 4 {
		t.Errorf("got %+v, %v", r, err)
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

// TestAWriteIsNotInConflictWithOneThatIsUnderWay: the answer that it is would say that
// it is not made, and the one under way may be itself, when its first answer was lost.
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
		errOf(s.Claims.Take(t.Context(), "tcp.1", client.ID, Holder{Slot: SlotPort, Instance: "i", Key: "k"}, nil)),
		s.Policies.Set(t.Context(), "tcp.2", []byte(`{}`)),
		account,
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, revision, _ := s.Operators.Get("account.a")
	_, rev, _ := s.Clients.table.get("shop")
	revoked := client
	revoked.Revoked, revoked.Secrets = time.Now().UTC(), nil
	data, err := json.Marshal(revoked)
	if err != nil {
		t.Fatal(err)
	}
	clients, until := s.Clients.table.kv, time.Now().Add(700*time.Millisecond)
	for _, kv := range []*jetstream.KeyValue{&s.Clients.table.kv, &s.Claims.table.kv, &s.Usages.table.kv, &s.Policies.table.kv, &s.Operators.table.kv} {
		*kv = &slow{KeyValue: *kv, until: until}
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
			return errOf(s.Claims.Take(t.Context(), "tcp.3", client.ID, Holder{Slot: SlotPort, Instance: "i", Key: "l"}, nil))
		},
		"create":  func() error { return errOf(s.Usages.Add(t.Context(), "c_1", "2026-05", Tally{In: 10})) },
		"policy":  func() error { return s.Policies.Claimed(t.Context(), "tcp.2", client.ID) },
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

// TestAWriteThatStaysUnderWayIsNotKnown: nor is it in conflict then.
func TestAWriteThatStaysUnderWayIsNotKnown(t *testing.T) {
	s := open(t, t.TempDir())
	if _, err := s.Clients.Add(t.Context(), "shop", secret(), ""); err != nil {
		t.Fatal(err)
	}
	s.Clients.table.kv = &slow{KeyValue: s.Clients.table.kv, until: time.Now().Add(time.Hour)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Clients.Revoke(ctx, "shop"); !bucket.IsAway(err) {
		t.Errorf("got %v, want that the store did not answer in time", err)
	}
	again, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := bucket.Replace(again, s.Clients.table.kv, "shop", []byte("{}")); !bucket.IsAway(err) {
		t.Errorf("replace: got %v, want that the store did not answer in time", err)
	}
}
