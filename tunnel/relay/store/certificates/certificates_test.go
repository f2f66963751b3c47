package certificates

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/engine"
	"adit/tunnel/relay/store/natstest"
)

var _ certmagic.Storage = (*Storage)(nil)

// open is a storage, and the bucket that it is in.
func open(t *testing.T) (*Storage, jetstream.KeyValue) {
	t.Helper()
	e, err := engine.Open(engine.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	kv, err := e.Bucket(t.Context(), "certificates")
	if err != nil {
		t.Fatal(err)
	}
	life, end := context.WithCancel(context.Background())
	s := New(life, kv)
	t.Cleanup(func() { end(); s.Wait() })
	return s, kv
}

func TestCertificateDataIsATree(t *testing.T) {
	c, _ := open(t)
	ctx := t.Context()
	keys := []string{
		"acme/ca-dir/users/me+x@example.com/me.json",
		"certificates/ca-dir/shop.example.com/shop.example.com.crt",
		"certificates/ca-dir/shop.example.com/shop.example.com.key",
		"certificates/ca-dir/wildcard_.example.com/a b=*>.crt",
	}
	for _, k := range keys {
		if err := c.Store(ctx, k, []byte(k)); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Load(ctx, k); err != nil || string(got) != k {
			t.Errorf("load %q: got %q, %v", k, got, err)
		}
		if info, err := c.Stat(ctx, k); err != nil || !info.IsTerminal || info.Size != int64(len(k)) || time.Since(info.Modified) > time.Minute {
			t.Errorf("stat %q: got %+v, %v", k, info, err)
		}
	}
	if _, err := c.Load(ctx, "certificates/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: got %v", err)
	}
	for _, l := range []struct {
		under     string
		recursive bool
		want      []string
	}{
		{"", true, keys},
		{"", false, []string{"acme", "certificates"}},
		{"certificates/ca-dir", false, []string{"certificates/ca-dir/shop.example.com", "certificates/ca-dir/wildcard_.example.com"}},
		{"certificates/ca-dir/shop.example.com", true, keys[1:3]},
		{"certificates/ca", true, nil},
	} {
		if got, err := c.List(ctx, l.under, l.recursive); err != nil || !slices.Equal(got, l.want) {
			t.Errorf("list %q: got %q, %v, want %q", l.under, got, err, l.want)
		}
	}
	if info, err := c.Stat(ctx, "certificates"); err != nil || info.IsTerminal || !c.Exists(ctx, "certificates/ca-dir") {
		t.Errorf("a folder: got %+v, %v", info, err)
	}
	if err := c.Delete(ctx, "certificates/ca-dir/shop.example.com"); err != nil {
		t.Fatal(err)
	}
	if got, _ := c.List(ctx, "", true); !slices.Equal(got, []string{keys[0], keys[3]}) {
		t.Errorf("after a folder was removed: got %q", got)
	}
	if err := c.Delete(ctx, "none"); err != nil {
		t.Errorf("remove what is not there: %v", err)
	}
}

func TestCertificateLocksExclude(t *testing.T) {
	s, kv := open(t)
	nodes := []*Storage{s, New(t.Context(), kv)}
	var inside, most int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			c := nodes[i%2]
			if err := c.Lock(t.Context(), "issue *.example.com"); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			inside++
			most = max(most, inside)
			mu.Unlock()
			if err := c.Store(t.Context(), "x", nil); err != nil { // time for others to come in
				t.Error(err)
			}
			mu.Lock()
			inside--
			mu.Unlock()
			if err := c.Unlock(t.Context(), "issue *.example.com"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most != 1 {
		t.Errorf("%d had the lock at once", most)
	}
}

func TestCertificateLockOfADeadNodeIsTakenOver(t *testing.T) {
	t.Parallel() // most of it is waiting
	alive, kv := open(t)
	life, die := context.WithCancel(t.Context())
	dead := New(life, kv)
	const lease = 6 * time.Second // a disk that has much to write may keep a renewal waiting for seconds
	dead.lease, alive.lease = lease, lease
	if err := dead.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), lease*3/2)
	defer cancel()
	if err := alive.Lock(short, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a lock that is renewed was taken: %v", err)
	}
	die()
	dead.Wait()
	if err := alive.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if err := dead.Unlock(t.Context(), "x"); err != nil {
		t.Errorf("the late one gives back: %v", err)
	}
	held, cancel2 := context.WithTimeout(t.Context(), time.Second/2)
	defer cancel2()
	if err := dead.Lock(held, "x"); err == nil {
		t.Error("the late one took the lock from its new holder")
	}
	if err := alive.Unlock(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}

// unending is a bucket whose first listing brings one key and then nothing more,
// nor its end.
type unending struct {
	jetstream.KeyValue
	listed atomic.Int32
}

func (u *unending) ListKeysFiltered(ctx context.Context, filters ...string) (jetstream.KeyLister, error) {
	lister, err := u.KeyValue.ListKeysFiltered(ctx, filters...)
	if err != nil || u.listed.Add(1) > 1 {
		return lister, err
	}
	keys := make(chan string, 1)
	keys <- <-lister.Keys()
	context.AfterFunc(ctx, func() { close(keys) })
	return unendingLister{lister, keys}, nil
}

type unendingLister struct {
	jetstream.KeyLister
	keys chan string
}

func (l unendingLister) Keys() <-chan string { return l.keys }

func TestAListingThatIsCutShortIsNotTakenForAll(t *testing.T) {
	s, of := open(t)
	for _, key := range []string{"a/1", "a/2"} {
		if err := s.Store(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
	}
	kv := &unending{KeyValue: of}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got, err := New(t.Context(), kv).List(ctx, "a", true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("in the time that there was: got %q, %v", got, err)
	}
	kv.listed.Store(0)
	got, err := New(t.Context(), kv).List(t.Context(), "a", true) // whoever asks sets no time
	if err != nil || !slices.Equal(got, []string{"a/1", "a/2"}) || kv.listed.Load() != 2 {
		t.Errorf("got %q, %v after %d listings, want both keys after two", got, err, kv.listed.Load())
	}
}

// TestWriteThatAServerKeptBackDoesNotUndoALaterOne repeats a write after its server has hung,
// has another node write, and then lets the hung server go on.
func TestWriteThatAServerKeptBackDoesNotUndoALaterOne(t *testing.T) {
	s, of := open(t)
	ctx := t.Context()
	for name, test := range map[string]struct {
		first, write func(kv jetstream.KeyValue) error // write is what is kept back
		then         func() error
		read         func() ([]byte, error)
	}{
		"a certificate": {
			write: func(kv jetstream.KeyValue) error {
				return (&Storage{kv: kv}).Store(ctx, "a", []byte("old"))
			},
			then: func() error { return s.Store(ctx, "a", []byte("new")) },
			read: func() ([]byte, error) { return s.Load(ctx, "a") },
		},
		"a certificate renewed": {
			first: func(jetstream.KeyValue) error { return s.Store(ctx, "b", []byte("first")) },
			write: func(kv jetstream.KeyValue) error {
				return (&Storage{kv: kv}).Store(ctx, "b", []byte("old"))
			},
			then: func() error { return s.Store(ctx, "b", []byte("new")) },
			read: func() ([]byte, error) { return s.Load(ctx, "b") },
		},
		"a certificate removed": {
			first: func(jetstream.KeyValue) error { return s.Store(ctx, "c", []byte("first")) },
			write: func(kv jetstream.KeyValue) error { return bucket.Purge(ctx, kv, natsKey(dataRoot, "c")) },
			then:  func() error { return s.Store(ctx, "c", []byte("new")) },
			read:  func() ([]byte, error) { return s.Load(ctx, "c") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			kv := &natstest.Keeping{KeyValue: of}
			if test.first != nil {
				if err := test.first(kv); err != nil {
					t.Fatal(err)
				}
			}
			kv.Keep.Store(true)
			if err := test.write(kv); err != nil {
				t.Fatal(err)
			}
			if kv.Kept == nil {
				t.Fatal("no write was kept back")
			}
			if err := test.then(); err != nil {
				t.Fatal(err)
			}
			kv.Kept()
			if got, err := test.read(); err != nil || string(got) != "new" {
				t.Errorf("got %q, %v, want what was written last", got, err)
			}
		})
	}
}

// TestLockIsKeptThoughAnswersAreLost loses the answers when a lock is taken, renewed and
// released. Nobody else gets the lock while it is held, and everybody can get it afterwards.
func TestLockIsKeptThoughAnswersAreLost(t *testing.T) {
	_, of := open(t)
	ctx := t.Context()
	kv := &natstest.Forgetful{KeyValue: of}
	c := New(ctx, kv)
	const name = "issue a.example"
	c.lease = 300 * time.Millisecond
	kv.Lose.Store(1) // of taking it
	if err := c.Lock(ctx, name); err != nil {
		t.Fatal(err)
	}
	revision := func() uint64 {
		t.Helper()
		e, err := of.Get(ctx, natsKey(lockRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		return e.Revision()
	}
	kv.Lose.Store(1) // of a renewal
	for end, begin := time.Now().Add(30*time.Second), revision(); revision() < begin+4; {
		if time.Now().After(end) {
			t.Fatalf("the lock is renewed %d times and then no more", revision()-begin)
		}
		time.Sleep(time.Millisecond)
	}
	kv.Lose.Store(1) // of one more, or of giving it back
	if err := c.Unlock(ctx, name); err != nil {
		t.Errorf("unlock: %v", err)
	}
	if _, err := of.Get(ctx, natsKey(lockRoot, name)); err == nil {
		t.Error("the lock was given back and is still there")
	}
}
