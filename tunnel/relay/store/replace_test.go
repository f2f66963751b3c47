package store

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
)

// keeping is a bucket whose server keeps the next write back until it is told to
// go on, and answers nothing for it.
type keeping struct {
	jetstream.KeyValue
	keep atomic.Bool
	kept func()
}

func (k *keeping) hold(write func(context.Context) (uint64, error)) (rev uint64, err error, held bool) {
	if !k.keep.CompareAndSwap(true, false) {
		return 0, nil, false
	}
	k.kept = func() { _, _ = write(context.Background()) }
	return 0, context.DeadlineExceeded, true
}

func (k *keeping) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if rev, err, held := k.hold(func(ctx context.Context) (uint64, error) { return k.KeyValue.Put(ctx, key, value) }); held {
		return rev, err
	}
	return k.KeyValue.Put(ctx, key, value)
}

func (k *keeping) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	if rev, err, held := k.hold(func(ctx context.Context) (uint64, error) { return k.KeyValue.Create(ctx, key, value, opts...) }); held {
		return rev, err
	}
	return k.KeyValue.Create(ctx, key, value, opts...)
}

func (k *keeping) Update(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	if rev, err, held := k.hold(func(ctx context.Context) (uint64, error) { return k.KeyValue.Update(ctx, key, value, rev) }); held {
		return rev, err
	}
	return k.KeyValue.Update(ctx, key, value, rev)
}

func (k *keeping) Purge(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	write := func(ctx context.Context) (uint64, error) { return 0, k.KeyValue.Purge(ctx, key, opts...) }
	if _, err, held := k.hold(write); held {
		return err
	}
	return k.KeyValue.Purge(ctx, key, opts...)
}

// TestWriteThatAServerKeptBackDoesNotUndoALaterOne has a write made again after
// its server fell silent, another node's write, and then the silent server going on.
func TestWriteThatAServerKeptBackDoesNotUndoALaterOne(t *testing.T) {
	s, ctx := open(t, t.TempDir()), t.Context()
	certificates := s.Certificates.kv
	settings := s.Settings.kv
	for name, test := range map[string]struct {
		first, write func(kv jetstream.KeyValue) error // write is what is kept back
		then         func() error
		read         func() ([]byte, error)
	}{
		"a certificate": {
			write: func(kv jetstream.KeyValue) error {
				return (&Certificates{kv: kv}).Store(ctx, "a", []byte("old"))
			},
			then: func() error { return s.Certificates.Store(ctx, "a", []byte("new")) },
			read: func() ([]byte, error) { return s.Certificates.Load(ctx, "a") },
		},
		"a certificate renewed": {
			first: func(jetstream.KeyValue) error { return s.Certificates.Store(ctx, "b", []byte("first")) },
			write: func(kv jetstream.KeyValue) error {
				return (&Certificates{kv: kv}).Store(ctx, "b", []byte("old"))
			},
			then: func() error { return s.Certificates.Store(ctx, "b", []byte("new")) },
			read: func() ([]byte, error) { return s.Certificates.Load(ctx, "b") },
		},
		"a certificate removed": {
			first: func(jetstream.KeyValue) error { return s.Certificates.Store(ctx, "c", []byte("first")) },
			write: func(kv jetstream.KeyValue) error { return bucket.Purge(ctx, kv, natsKey(dataRoot, "c")) },
			then:  func() error { return s.Certificates.Store(ctx, "c", []byte("new")) },
			read:  func() ([]byte, error) { return s.Certificates.Load(ctx, "c") },
		},
		"a setting": {
			write: func(kv jetstream.KeyValue) error { return (&Settings{kv: kv}).Put(ctx, "d", []byte("old")) },
			then:  func() error { return s.Settings.Put(ctx, "d", []byte("new")) },
			read:  func() ([]byte, error) { return s.Settings.Get(ctx, "d") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			kv := &keeping{KeyValue: certificates}
			if name == "a setting" {
				kv.KeyValue = settings
			}
			if test.first != nil {
				if err := test.first(kv); err != nil {
					t.Fatal(err)
				}
			}
			kv.keep.Store(true)
			if err := test.write(kv); err != nil {
				t.Fatal(err)
			}
			if kv.kept == nil {
				t.Fatal("no write was kept back")
			}
			if err := test.then(); err != nil {
				t.Fatal(err)
			}
			kv.kept()
			if got, err := test.read(); err != nil || string(got) != "new" {
				t.Errorf("got %q, %v, want what was written last", got, err)
			}
		})
	}
}

func (f *forgetful) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	return f.answer(f.KeyValue.Create(ctx, key, value, opts...))
}

// TestLockIsKeptThoughAnswersAreLost has the answers to a lock's taking, renewal
// and giving back lost: nobody else gets it meanwhile, and all get it after.
func TestLockIsKeptThoughAnswersAreLost(t *testing.T) {
	s, ctx := open(t, t.TempDir()), t.Context()
	kv := &forgetful{KeyValue: s.Certificates.kv}
	c := newCertificates(ctx, kv)
	const name = "issue a.example"
	c.lease = 300 * time.Millisecond
	kv.lose.Store(1) // of taking it
	if err := c.Lock(ctx, name); err != nil {
		t.Fatal(err)
	}
	revision := func() uint64 {
		t.Helper()
		e, err := s.Certificates.kv.Get(ctx, natsKey(lockRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		return e.Revision()
	}
	kv.lose.Store(1) // of a renewal
	for end, begin := time.Now().Add(30*time.Second), revision(); revision() < begin+4; {
		if time.Now().After(end) {
			t.Fatalf("the lock is renewed %d times and then no more", revision()-begin)
		}
		time.Sleep(time.Millisecond)
	}
	kv.lose.Store(1) // of one more, or of giving it back
	if err := c.Unlock(ctx, name); err != nil {
		t.Errorf("unlock: %v", err)
	}
	if _, err := s.Certificates.kv.Get(ctx, natsKey(lockRoot, name)); err == nil {
		t.Error("the lock was given back and is still there")
	}
}
