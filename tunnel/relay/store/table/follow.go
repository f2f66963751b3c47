package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/leader"
	"adit/tunnel/relay/store/replica"
)

const (
	// noticeGrace is how long a watch may take to bring a write that a notice has announced.
	noticeGrace = 250 * time.Millisecond
	fetchTime   = 2 * time.Second // to read what a notice announces, or when a bucket was created
	followRetry = 200 * time.Millisecond
	followBegin = 1500 * time.Millisecond // to begin a watch, at first
	followRead  = 15 * time.Second        // to read the bucket after that
	// followSilence is how long a watch may be silent while a bucket is read. The end of the
	// bucket is found by counting, and the count that a server gives may be too high. In that
	// case the end is never reported although everything has arrived.
	followSilence = 5 * time.Second
	// copyTime is how much later than another a server may have created its replica of a
	// bucket.
	copyTime = 10 * time.Second
	// ownMemory is how long removals are remembered if there is only one server.
	ownMemory = time.Minute
)

var errWatchEnded = errors.New("the watch ended")

// Open opens a table of a set and reads its bucket. The bucket is followed until life ends.
func Open[T any](ctx, life context.Context, s *Set, name string) (*Table[T], error) {
	kv, err := s.cfg.Engine.Bucket(ctx, name)
	if err != nil {
		return nil, err
	}
	t := &Table[T]{
		name: name, kv: kv, log: s.cfg.Log, took: s.cfg.Took, js: s.cfg.Engine.JetStream(), set: s,
		stale: make(chan struct{}, 1),
	}
	if s.cfg.Engine.Alone() {
		t.memory = replica.New[T](ownMemory)
	} else {
		t.memory = replica.New[T](bucket.MarkerTTL)
	}
	t.leader = leader.Leader{Conn: t.js.Conn(), Bucket: kv.Bucket()}
	t.leads = t.has
	short, cancel := context.WithTimeout(ctx, fetchTime)
	t.made, err = t.created(short)
	cancel()
	if err != nil {
		t.log.Debug("another bucket in place of this one will not be told from it", "error", err)
	}
	w, err := t.read(ctx, life, 0)
	for errors.Is(err, errWatchEnded) && bucket.Rested(ctx) { // its server has gone
		w, err = t.read(ctx, life, 0)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.byName[name] = t
	s.mu.Unlock()
	s.work.Go(func() { t.follow(life, w) })
	return t, nil
}

// read begins a watch and takes in the contents of the bucket. try counts the attempts since
// the store was opened. In attempt 0, while the store is being opened, a value that does not
// parse is an error.
func (t *Table[T]) read(ctx, life context.Context, try int) (*watch, error) {
	strict := try == 0
	r := t.beginReading()
	w, err := t.begin(ctx, life, try)
	if err != nil {
		return nil, fmt.Errorf("watch store of %s: %w", t.name, err)
	}
	silence := time.NewTimer(followSilence)
	defer silence.Stop()
	for {
		select {
		case e, ok := <-w.updates:
			switch {
			case !ok:
				return nil, fmt.Errorf("read store of %s: %w", t.name, errWatchEnded)
			case e == nil:
				t.endReading(ctx, r)
				return w, nil
			}
			silence.Reset(followSilence)
			r.saw(e.Key(), e.Revision())
			if err := t.see(e); err != nil {
				if strict {
					w.stop()
					return nil, err
				}
				t.log.Error("store holds a value that does not parse", "error", err)
			}
		case <-silence.C:
			if last, err := t.leader.Last(ctx); err == nil && r.top >= last {
				t.endReading(ctx, r)
				return w, nil
			}
			w.stop()
			return nil, fmt.Errorf("read store of %s: %w", t.name, errWatchEnded)
		case <-ctx.Done():
			w.stop() // keep what has been read: all of it is valid
			return nil, fmt.Errorf("read store of %s: %w", t.name, ctx.Err())
		}
	}
}

// begin begins a watch. While the store is being opened, it retries until ctx ends, because a
// cluster that has just started may answer for one bucket before it answers for the next.
func (t *Table[T]) begin(ctx, life context.Context, try int) (w *watch, err error) {
	if try > 0 { // the caller retries, and a lost request is never answered
		ctx, cancel := context.WithTimeout(ctx, followBegin<<min(try-1, 3))
		defer cancel()
		return t.watch(ctx, life)
	}
	err = bucket.Patiently(ctx, func(ctx context.Context) error {
		w, err = t.watch(ctx, life)
		return err
	})
	return w, err
}

// watch delivers a bucket's contents, followed by its changes.
type watch struct {
	updates <-chan jetstream.KeyValueEntry
	end     context.CancelFunc
}

// stop ends the watch. It discards pending entries, which would otherwise keep the
// subscription from ending.
func (w *watch) stop() {
	w.end()
	go func() { // ends with the subscription, or with the connection at the latest
		for range w.updates {
		}
	}()
}

// watch begins a watch within ctx. The watch lasts as long as life. ctx limits the wait
// because the library waits for an answer that never comes if the server dies.
func (t *Table[T]) watch(ctx, life context.Context) (*watch, error) {
	own, end := context.WithCancel(life)
	stop := context.AfterFunc(ctx, end)
	w, err := t.kv.WatchAll(own)
	if !stop() || err != nil {
		end()
		return nil, errors.Join(err, ctx.Err())
	}
	return &watch{w.Updates(), end}, nil
}

// has reports whether the bucket's leader has a value, or the marker of a removal, under a
// key.
func (t *Table[T]) has(ctx context.Context, key string) (bool, error) {
	_, ok, err := t.leader.Get(ctx, key)
	return ok, err
}

// forget drops the values that a bucket no longer contained when it was read, provided that it
// is the bucket that was opened: one created since in place of a lost one says nothing about
// them. For values newer than everything that was read, the leader is asked, since the server
// that was read may lag behind. Values stay if they are newer than everything that the leader
// has ever had, if the leader has them, or if it cannot be asked.
func (t *Table[T]) forget(ctx context.Context, missing map[string]uint64, top uint64) {
	if len(missing) > 0 && t.isAnother(ctx) {
		t.log.Error("what the store had is lost, and there is another in its place; this node goes on with what it knows: "+
			"bring the backup back, and then restart the node", "table", t.name)
		return
	}
	var last uint64 // asked for only when needed
	for key, rev := range missing {
		if rev <= top {
			continue
		}
		if last == 0 && ctx.Err() == nil {
			last, _ = t.leader.Last(ctx) // 0 if it cannot be asked
		}
		if rev > last || ctx.Err() != nil {
			delete(missing, key)
			continue
		}
		if there, err := t.leads(ctx, key); err != nil || there {
			delete(missing, key)
		}
	}
	t.memory.Forget(missing)
}

// isAnother reports whether the bucket was created after the table was opened. A server may
// create its replica slightly later than the others.
func (t *Table[T]) isAnother(ctx context.Context) bool {
	if t.made.IsZero() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	made, err := t.created(ctx)
	return err == nil && made.After(t.made.Add(copyTime))
}

// follow takes in what the watch delivers, and begins a new watch when this one is stale.
func (t *Table[T]) follow(life context.Context, w *watch) {
	for {
		select {
		case e, ok := <-w.updates:
			if !ok {
				if w = t.anew(life, nil); w == nil {
					return
				}
				continue
			}
			if e == nil {
				continue
			}
			if err := t.see(e); err != nil {
				t.log.Error("store holds a value that does not parse", "error", err)
			}
		case <-t.stale:
			if w = t.anew(life, w); w == nil {
				return
			}
		case <-life.Done():
			return
		}
	}
}

// anew replaces a watch. It tries until life ends, and then returns nil.
func (t *Table[T]) anew(life context.Context, old *watch) *watch {
	if old != nil {
		old.stop()
	}
	for try := 1; life.Err() == nil; try++ {
		ctx, cancel := context.WithTimeout(life, followRead)
		w, err := t.read(ctx, life, try)
		cancel()
		if err == nil {
			return w
		}
		t.log.Debug("watch of the store", "table", t.name, "error", err)
		pause := time.NewTimer(followRetry)
		select {
		case <-pause.C:
		case <-life.Done():
			pause.Stop()
		}
	}
	return nil
}

// refollow makes the table begin a new watch.
func (t *Table[T]) refollow() {
	select {
	case t.stale <- struct{}{}:
	default:
	}
}

// noticed begins a new watch if the current one does not bring a write in time.
func (t *Table[T]) noticed(n notice) {
	if t.knows(n) {
		return
	}
	time.AfterFunc(noticeGrace, func() {
		if !t.knows(n) {
			t.log.Debug("watch of the store lags", "table", t.name, "revision", n.Revision)
			t.refollow()
			t.fetch(n)
		}
	})
}

// fetch reads the write that a notice announces. Any server that keeps the bucket can answer,
// while a watch may have to wait for a new leader.
func (t *Table[T]) fetch(n notice) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	e, err := t.kv.Get(ctx, n.Key)
	if err != nil || n.Removed || e.Revision() < n.Revision {
		return
	}
	if err := t.take(e); err != nil {
		t.log.Error("store holds a value that does not parse", "error", err)
	}
}

func (t *Table[T]) knows(n notice) bool {
	if !n.Removed {
		return t.seen.Load() >= n.Revision
	}
	return t.memory.Past(n.Key, n.Revision)
}

// see takes in an entry that the watch delivered.
func (t *Table[T]) see(e jetstream.KeyValueEntry) error {
	rev := e.Revision()
	if rev > t.seen.Load() {
		t.seen.Store(rev)
	}
	err := t.take(e)
	if rev > t.taken.Load() {
		t.taken.Store(rev)
	}
	return err
}

// take takes in what the bucket has under one key, without recording how far the watch has
// come.
func (t *Table[T]) take(e jetstream.KeyValueEntry) error {
	c := Change{Key: e.Key(), Revision: e.Revision(), Removed: e.Operation() != jetstream.KeyValuePut, Value: e.Value()}
	return t.takeDated(c, e.Created())
}
