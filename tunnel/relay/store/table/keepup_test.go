package table

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/leader"
	"adit/tunnel/relay/store/natstest"
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

// TestANodeKeepsUpThoughItsServerLags has one of two nodes use a server that is stuck in the
// initial state and delivers nothing.
func TestANodeKeepsUpThoughItsServerLags(t *testing.T) {
	url := natstest.Start(t).URL()
	a, b := begin(t, url), begin(t, url)
	clients, policies := a.table(t, "clients"), a.table(t, "policies")
	for _, name := range []string{"kept", "revoked", "changed"} {
		put(t, clients, name, "active")
	}
	for _, target := range []string{"domain.gone", "domain.set"} {
		put(t, policies, target, "old")
	}
	bClients, bPolicies := b.table(t, "clients"), b.table(t, "policies")
	b.end()
	bClients.kv, bPolicies.kv = newLagging(t, bClients.kv), newLagging(t, bPolicies.kv)
	life, end := context.WithCancel(t.Context())
	var following sync.WaitGroup
	t.Cleanup(func() { end(); following.Wait() })
	for _, tab := range []*Table[string]{bClients, bPolicies} {
		following.Go(func() { tab.follow(life, tab.anew(life, nil)) })
	}

	put(t, clients, "revoked", "revoked")
	put(t, clients, "added", "active")
	put(t, policies, "domain.set", "new")
	if err := policies.Drop(t.Context(), "domain.gone"); err != nil {
		t.Fatal(err)
	}
	names := func(tab *Table[string]) (list []string) {
		tab.Each(func(key, _ string) bool { list = append(list, key); return true })
		slices.Sort(list)
		return list
	}
	for range 2 {
		bClients.keepUp(life)
		bPolicies.keepUp(life)
	}
	for round := range 3 {
		if got, want := names(bClients), names(clients); !slices.Equal(got, want) {
			t.Errorf("round %d: the node has the clients %q, want %q", round, got, want)
		}
		if v, _, ok := bClients.Get("revoked"); !ok || v != "revoked" {
			t.Errorf("round %d: a client that was revoked is %s", round, v)
		}
		if v, _, ok := bPolicies.Get("domain.set"); !ok || v != "new" {
			t.Errorf("round %d: the policy is %s, %t", round, v, ok)
		}
		if _, _, ok := bPolicies.Get("domain.gone"); ok {
			t.Errorf("round %d: a policy that was deleted is back", round)
		}
		bClients.anew(life, nil) // an old watch again brings old things
		bPolicies.anew(life, nil)
	}
}

// TestKeepingUpLeavesTheWatchItsTime has a write that the watch is about to bring.
func TestKeepingUpLeavesTheWatchItsTime(t *testing.T) {
	url := natstest.Start(t).URL()
	a, b := begin(t, url), begin(t, url)
	clients := a.table(t, "clients")
	put(t, clients, "old", "active")
	tab := b.table(t, "clients")
	b.end()
	tab.keepUp(t.Context())
	put(t, clients, "new", "active")
	if _, _, ok := tab.Get("new"); ok {
		t.Fatal("the watch still brings changes")
	}
	tab.keepUp(t.Context())
	if _, _, ok := tab.Get("new"); ok {
		t.Error("read at once what the watch may be bringing")
	}
	tab.keepUp(t.Context())
	if _, _, ok := tab.Get("new"); !ok {
		t.Error("not read though the watch did not bring it")
	}
}

// TestALeaderThatIsNotThereIsAskedAgain has a server answer that it knows no leader.
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
	table := &Table[string]{name: "fake", leader: leader.Leader{Conn: conn, Bucket: "adit_fake"}}
	if w, ok, err := table.latest(t.Context(), "domain.a"); err != nil || !ok || w.Rev != 7 {
		t.Errorf("got %+v, %t, %v", w, ok, err)
	}
}
