package natstest

import (
	"context"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Forgetful is a bucket that makes writes but loses their answers, as many as Lose says.
type Forgetful struct {
	jetstream.KeyValue
	Lose atomic.Int32
}

func (f *Forgetful) answer(rev uint64, err error) (uint64, error) {
	if err == nil && f.Lose.Add(-1) >= 0 {
		return 0, context.DeadlineExceeded
	}
	return rev, err
}

func (f *Forgetful) Update(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	return f.answer(f.KeyValue.Update(ctx, key, value, rev))
}

func (f *Forgetful) Purge(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	_, err := f.answer(0, f.KeyValue.Purge(ctx, key, opts...))
	return err
}

func (f *Forgetful) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	return f.answer(f.KeyValue.Create(ctx, key, value, opts...))
}

// Keeping is a bucket whose server, once Keep has been called, delays the next write until
// Kept is called, and does not answer it.
type Keeping struct {
	jetstream.KeyValue
	Keep atomic.Bool
	Kept func()
}

func (k *Keeping) hold(write func(context.Context) (uint64, error)) (rev uint64, err error, held bool) {
	if !k.Keep.CompareAndSwap(true, false) {
		return 0, nil, false
	}
	k.Kept = func() { _, _ = write(context.Background()) }
	return 0, context.DeadlineExceeded, true
}

func (k *Keeping) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if rev, err, held := k.hold(func(ctx context.Context) (uint64, error) { return k.KeyValue.Put(ctx, key, value) }); held {
		return rev, err
	}
	return k.KeyValue.Put(ctx, key, value)
}

func (k *Keeping) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	if rev, err, held := k.hold(func(ctx context.Context) (uint64, error) { return k.KeyValue.Create(ctx, key, value, opts...) }); held {
		return rev, err
	}
	return k.KeyValue.Create(ctx, key, value, opts...)
}

func (k *Keeping) Update(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	if rev, err, held := k.hold(func(ctx context.Context) (uint64, error) { return k.KeyValue.Update(ctx, key, value, rev) }); held {
		return rev, err
	}
	return k.KeyValue.Update(ctx, key, value, rev)
}

func (k *Keeping) Purge(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	write := func(ctx context.Context) (uint64, error) { return 0, k.KeyValue.Purge(ctx, key, opts...) }
	if _, err, held := k.hold(write); held {
		return err
	}
	return k.KeyValue.Purge(ctx, key, opts...)
}

// Unled is a bucket of a cluster that cannot answer at first: the first two reads and watches
// fail.
type Unled struct {
	jetstream.KeyValue
	asked atomic.Int32
}

func (u *Unled) away() error {
	if u.asked.Add(1) <= 2 {
		return nats.ErrNoResponders
	}
	return nil
}

func (u *Unled) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if err := u.away(); err != nil {
		return nil, err
	}
	return u.KeyValue.Get(ctx, key)
}

func (u *Unled) WatchAll(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	if err := u.away(); err != nil {
		return nil, err
	}
	return u.KeyValue.WatchAll(ctx, opts...)
}
