package store

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/nats-io/nats.go/jetstream"
)

var _ certmagic.Storage = (*Certificates)(nil)

func TestCertificateDataIsATree(t *testing.T) {
	s, ctx := open(t, t.TempDir()), t.Context()
	c := s.Certificates
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
	s := open(t, t.TempDir())
	nodes := []*Certificates{s.Certificates, newCertificates(t.Context(), s.Certificates.kv)}
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
	s := open(t, t.TempDir())
	life, die := context.WithCancel(t.Context())
	dead, alive := newCertificates(life, s.Certificates.kv), s.Certificates
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
	dead.wait()
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
	s := open(t, t.TempDir())
	for _, key := range []string{"a/1", "a/2"} {
		if err := s.Certificates.Store(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
	}
	kv := &unending{KeyValue: s.Certificates.kv}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got, err := newCertificates(t.Context(), kv).List(ctx, "a", true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("in the time that there was: got %q, %v", got, err)
	}
	kv.listed.Store(0)
	got, err := newCertificates(t.Context(), kv).List(t.Context(), "a", true) // whoever asks sets no time
	if err != nil || !slices.Equal(got, []string{"a/1", "a/2"}) || kv.listed.Load() != 2 {
		t.Errorf("got %q, %v after %d listings, want both keys after two", got, err, kv.listed.Load())
	}
}
