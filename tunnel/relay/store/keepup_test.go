package store

import (
	"context"
	"slices"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/leader"
)

// lagging is a bucket as a server serves it that has lost the others: it has what
// it had, and does not know that there is more.
type lagging struct {
	jetstream.KeyValue
	had []jetstream.KeyValueEntry
}

func newLagging(t *testing.T, kv jetstream.KeyValue) *lagging {
	t.Helper()
	w, err := kv.WatchAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Stop() }()
	l := &lagging{KeyValue: kv}
	for e := range w.Updates() {
		if e == nil {
			break
		}
		l.had = append(l.had, e)
	}
	return l
}

func (l *lagging) Get(context.Context, string) (jetstream.KeyValueEntry, error) {
	return nil, jetstream.ErrKeyNotFound
}

func (l *lagging) WatchAll(ctx context.Context, _ ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	w := oldWatcher{make(chan jetstream.KeyValueEntry, len(l.had)+1)}
	for _, e := range l.had {
		w.updates <- e
	}
	w.updates <- nil
	context.AfterFunc(ctx, func() { close(w.updates) })
	return w, nil
}

type oldWatcher struct{ updates chan jetstream.KeyValueEntry }

func (w oldWatcher) Updates() <-chan jetstream.KeyValueEntry { return w.updates }
func (w oldWatcher) Error() <-chan error                     { return nil }
func (w oldWatcher) Stop() error                             { return nil }

// TestANodeKeepsUpThoughItsServerLags has one of two nodes served by a server
// that has what was there in the beginning, and brings nothing.
func TestANodeKeepsUpThoughItsServerLags(t *testing.T) {
	ns := startNATS(t, t.TempDir(), 0, nil)
	a := openAt(t, Config{URLs: []string{ns.ClientURL()}})
	for _, name := range []string{"kept", "revoked", "changed"} {
		if _, err := a.Clients.Add(t.Context(), name, secret(), ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, target := range []string{"domain.gone", "domain.set"} {
		if err := a.Policies.Set(t.Context(), target, []byte(`{"old":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	b := openAt(t, Config{URLs: []string{ns.ClientURL()}})
	clients, policies := b.Clients.table, b.Policies.table
	b.stop() // its own watches end, and nobody keeps up
	for _, table := range b.tables {
		table.wait()
	}
	b.work.Wait()
	clients.kv, policies.kv = newLagging(t, clients.kv), newLagging(t, policies.kv)
	life, end := context.WithCancel(t.Context())
	follow := func(wait func(context.Context)) {
		done := make(chan struct{})
		go func() { defer close(done); wait(life) }()
		t.Cleanup(func() { end(); <-done })
	}
	follow(func(life context.Context) { clients.follow(life, clients.anew(life, nil)) })
	follow(func(life context.Context) { policies.follow(life, policies.anew(life, nil)) })

	if _, err := a.Clients.Revoke(t.Context(), "revoked"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Clients.Add(t.Context(), "added", secret(), ""); err != nil {
		t.Fatal(err)
	}
	if err := a.Policies.Set(t.Context(), "domain.set", []byte(`{"new":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := a.Policies.Delete(t.Context(), "domain.gone"); err != nil {
		t.Fatal(err)
	}
	names := func(s *Store) (list []string) {
		for _, c := range s.Clients.List() {
			list = append(list, c.Name)
		}
		slices.Sort(list)
		return list
	}
	for range 2 {
		clients.keepUp(life)
		policies.keepUp(life)
	}
	for round := range 3 {
		if got, want := names(b), names(a); !slices.Equal(got, want) {
			t.Errorf("round %d: the node has the clients %q, want %q", round, got, want)
		}
		if c, ok := b.Clients.Get("revoked"); !ok || c.Revoked.IsZero() {
			t.Errorf("round %d: a client that was revoked is %+v", round, c)
		}
		if p, ok := b.Policies.Get("domain.set"); !ok || string(p.Document) != `{"new":1}` {
			t.Errorf("round %d: the policy is %s, %t", round, p.Document, ok)
		}
		if _, ok := b.Policies.Get("domain.gone"); ok {
			t.Errorf("round %d: a policy that was deleted is back", round)
		}
		clients.anew(life, nil) // an old watch again brings old things
		policies.anew(life, nil)
	}
}

// TestKeepingUpLeavesTheWatchItsTime has a write that the watch is about to bring.
func TestKeepingUpLeavesTheWatchItsTime(t *testing.T) {
	ns := startNATS(t, t.TempDir(), 0, nil)
	a := openAt(t, Config{URLs: []string{ns.ClientURL()}})
	if _, err := a.Clients.Add(t.Context(), "old", secret(), ""); err != nil {
		t.Fatal(err)
	}
	b := openAt(t, Config{URLs: []string{ns.ClientURL()}})
	table := b.Clients.table
	b.stop()
	for _, table := range b.tables {
		table.wait()
	}
	b.work.Wait()
	table.keepUp(t.Context())
	if _, err := a.Clients.Add(t.Context(), "new", secret(), ""); err != nil {
		t.Fatal(err)
	}
	if _, ok := b.Clients.Get("new"); ok {
		t.Fatal("the watch still brings changes")
	}
	table.keepUp(t.Context())
	if _, ok := b.Clients.Get("new"); ok {
		t.Error("read at once what the watch may be bringing")
	}
	table.keepUp(t.Context())
	if _, ok := b.Clients.Get("new"); !ok {
		t.Error("not read though the watch did not bring it")
	}
}

// TestALeaderThatIsNotThereIsAskedAgain has a server answer that it knows of none.
func TestALeaderThatIsNotThereIsAskedAgain(t *testing.T) {
	ns, err := server.NewServer(&server.Options{DontListen: true, NoLog: true, NoSigs: true}) // without JetStream, which would answer, too
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(ns.Shutdown)
	conn, err := nats.Connect("", nats.InProcessServer(ns))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	answers := []string{
		`{"type":"io.nats.jetstream.api.v1.stream_msg_get_response","error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`,
		`{"message":{"subject":"$KV.adit_fake.domain.a","seq":7,"data":"e30="}}`,
	}
	asked := 0
	_, err = conn.Subscribe("$JS.API.STREAM.MSG.GET.KV_adit_fake", func(m *nats.Msg) {
		_ = m.Respond([]byte(answers[min(asked, 1)]))
		asked++
	})
	if err != nil {
		t.Fatal(err)
	}
	table := &table[StoredPolicy]{name: "fake", leader: leader.Leader{Conn: conn, Bucket: "adit_fake"}}
	if w, ok, err := table.latest(t.Context(), "domain.a"); err != nil || !ok || w.Rev != 7 {
		t.Errorf("got %+v, %t, %v", w, ok, err)
	}
}
