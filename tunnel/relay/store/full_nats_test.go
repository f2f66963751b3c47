package store

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/natstest"
)

// TestNATSWithoutRoomIsSaid checks that writers are told at once, and that the store's
// condition says so until there is room again.
func TestNATSWithoutRoomIsSaid(t *testing.T) {
	t.Parallel() // most of it is waiting
	s := openAt(t, Config{URLs: []string{natstest.StartSmall(t, 8<<20).URL()}, EventsBytes: 1 << 20})
	js := s.engine.JetStream()
	fill(t, js)
	add := func() error { return errOf(s.Clients.Add(t.Context(), "shop", secret(), "")) }
	if err := add(); !bucket.IsFull(err) || bucket.IsAway(err) {
		t.Errorf("got %v, want that there is no room", err)
	}
	eventually(t, "the store is said to be full", func() bool {
		_ = add()
		return s.Condition() == Full
	})
	if err := js.DeleteStream(t.Context(), "others"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room", func() bool { return add() == nil })
	eventually(t, "the store is said to be there", func() bool { return s.Condition() == Here })
}

// fill writes to the stream others until the server has no more room.
func fill(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "others", Subjects: []string{"others"}}); err != nil {
		t.Fatal(err)
	}
	for size := 256 << 10; size > 0; size /= 4 {
		var err error
		for i := 0; err == nil; i++ {
			if i == 1000 {
				t.Fatal("the server takes more than it has room for")
			}
			_, err = js.Publish(t.Context(), "others", make([]byte, size))
		}
	}
}

// TestNodesSeeEachOtherThoughNATSHasNoRoom for their entries, including a node that starts
// during that time.
func TestNodesSeeEachOtherThoughNATSHasNoRoom(t *testing.T) {
	t.Parallel() // most of it is waiting
	cfg := Config{URLs: []string{natstest.StartSmall(t, 8<<20).URL()}, EventsBytes: 1 << 20}
	a := openAt(t, cfg)
	fill(t, a.engine.JetStream())
	b := openAt(t, cfg)
	renew := func(s *Store, id, boot string) error { return s.Nodes.Renew(t.Context(), Node{ID: id, Boot: boot}) }
	sees := func(s *Store, id, boot string) {
		t.Helper()
		eventually(t, id+" is seen as "+boot, func() bool {
			v, ok := s.Nodes.Get(id)
			return ok == (boot != "") && v.Boot == boot && slices.Contains(s.Nodes.List(), v) == ok
		})
	}
	var news atomic.Bool
	a.Nodes.OnChange(func() { news.Store(true) })
	if err := renew(b, "n_b", "full"); !bucket.IsFull(err) {
		t.Errorf("got %v, want that there is no room", err)
	}
	sees(a, "n_b", "full")
	eventually(t, "who follows the nodes is told", news.Load)
	if err := a.engine.JetStream().DeleteStream(t.Context(), "others"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is room", func() bool { return renew(b, "n_b", "room") == nil })
	sees(a, "n_b", "room")
	if err := b.Nodes.Leave(t.Context(), "n_b"); err != nil {
		t.Fatal(err)
	}
	sees(a, "n_b", "")
}

// listing returns a check of the nodes that are listed, where the store has an older entry
// of n_a.
func listing(t *testing.T, a *announced) (listed func(when string, want ...string)) {
	return func(when string, want ...string) {
		t.Helper()
		list := map[string]Node{"n_a": {Boot: "kept"}}
		a.over(list)
		var got []string
		for id, v := range list {
			got = append(got, id+" "+v.Boot)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
}

// TestAnnouncementsLastAsLongAsEntries also checks that the store's older entry of a node is
// not listed after that, until there is a newer one.
func TestAnnouncementsLastAsLongAsEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a announced
		listed := listing(t, &a)
		listed("in the beginning", "n_a kept")
		a.take(Node{ID: "n_a", Boot: "said"})
		a.take(Node{ID: "n_b", Boot: "said"})
		listed("when they are heard", "n_a said", "n_b said")
		time.Sleep(NodeLease)
		listed("later", "n_a said", "n_b said")
		time.Sleep(time.Second)
		listed("in the end")
		a.drop("n_a")
		listed("with an entry of its own", "n_a kept")
		time.Sleep(forgetAnnounced)
		if listed("later still", "n_a kept"); len(a.byID) != 0 {
			t.Errorf("%d are remembered", len(a.byID))
		}
	})
}
