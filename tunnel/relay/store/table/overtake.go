package table

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/leader"
	"adit/tunnel/relay/store/replica"
)

const (
	// overtakeMost is the most writes that a store may have lost if its revisions are to be
	// advanced to where they were.
	overtakeMost  = 1 << 18
	overtakeBatch = 256
	overtakeTime  = 10 * time.Second // a later attempt continues
	// overtakenKey is the key of messages that are written only to advance the revisions.
	overtakenKey = "_overtaken"
	// clocksApart is how far the clocks of the servers of one cluster may differ.
	clocksApart = 2 * time.Second
)

// overLost writes a value in place of a revision that is known here but that the store has
// lost; servers that lose power at the same time lose what they had not synced. done is false
// if the store has not lost it, so that the write is in conflict with another.
func (t *Table[T]) overLost(ctx context.Context, key string, data []byte, rev uint64) (next uint64, done bool, err error) {
	base, lost, err := t.lost(ctx, key, t.known(key, rev))
	if err != nil || !lost {
		return 0, false, err
	}
	next, _, err = bucket.Again(ctx, func(ctx context.Context) (uint64, error) { return t.kv.Update(ctx, key, data, base) })
	switch {
	case bucket.IsConflict(err):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	}
	t.replaced(key, rev)
	return next, true, nil
}

// removeLost is overLost for a removal.
func (t *Table[T]) removeLost(ctx context.Context, key string, rev uint64) (done bool, err error) {
	base, lost, err := t.lost(ctx, key, t.known(key, rev))
	if err != nil || !lost {
		return false, err
	}
	// Other nodes know the value, too, so the removal is written even if the store has
	// nothing.
	if _, err = t.publish(ctx, t.message(written{key: key, removed: true}), base); err != nil {
		return false, err
	}
	t.replaced(key, rev)
	return true, nil
}

// known returns what is known here about a revision of a key.
func (t *Table[T]) known(key string, rev uint64) replica.Entry[T] {
	if e, ok := t.memory.Entry(key); ok && e.Revision == rev {
		return e
	}
	return replica.Entry[T]{Revision: rev}
}

// message returns the message that sets the state of a key.
func (t *Table[T]) message(v written) *nats.Msg {
	m := nats.NewMsg("$KV." + t.kv.Bucket() + "." + v.key)
	m.Data = v.value
	if v.removed {
		m.Header.Set("KV-Operation", "PURGE")
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	return m
}

// publish publishes a message in place of the revision base of its key; 0 means that there is
// none.
func (t *Table[T]) publish(ctx context.Context, m *nats.Msg, base uint64) (rev uint64, err error) {
	opts := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(base)}
	if len(m.Data) == 0 {
		opts = append(opts, jetstream.WithMsgTTL(bucket.MarkerTTL))
	}
	rev, _, err = bucket.Again(ctx, func(ctx context.Context) (uint64, error) {
		ack, err := t.js.PublishMsg(ctx, m, opts...)
		if err != nil {
			return 0, err
		}
		return ack.Sequence, nil
	})
	return rev, err
}

// fate is what has become of a known write in the store.
type fate int

const (
	hasIt    fate = iota // or something newer
	hasOlder             // or nothing
	hasNewer             // but under a revision that is not higher
)

// fateOf compares what is known of a key with what the store has; ok is false if that is
// nothing. Of two writes with the same revision, the store's was made after the other was
// lost. The same holds for a write with a lower revision and a later time: it comes from a
// node that had just started and did not know of the lost write. A value that was written
// again is as old as its header says.
func fateOf[T any](e replica.Entry[T], w leader.Written, ok bool) fate {
	mended, _ := strconv.ParseUint(w.Header.Get(mendedHeader), 10, 64)
	switch {
	case !ok && e.Removed, ok && w.Removed && e.Removed && w.Rev <= e.Revision:
		return hasIt
	case !ok:
		return hasOlder
	case w.Rev == e.Revision && isSame(e, w):
		return hasIt
	case mended >= e.Revision:
		return hasIt
	case mended > 0:
		return hasOlder
	case w.Rev > e.Revision:
		return hasIt
	case w.Rev == e.Revision, !e.Written.IsZero() && w.Time.Sub(e.Written) > clocksApart:
		return hasNewer
	}
	return hasOlder
}

// isSame reports whether what is known and what the store has under the same revision are the
// same write.
func isSame[T any](e replica.Entry[T], w leader.Written) bool {
	if !e.Written.IsZero() {
		return e.Written.Equal(w.Time)
	}
	data, err := json.Marshal(e.Value)
	return err != nil || e.Removed == w.Removed && (e.Removed || bytes.Equal(data, w.Value))
}

// lost finds out whether the store has lost what is known here of a key. It also returns the
// revision that the store has for the key instead; 0 means none. The next write then gets a
// higher revision than any that is known for the key. If the store has a write that was made
// after the loss, lost writes it again, so that all nodes accept it.
func (t *Table[T]) lost(ctx context.Context, key string, e replica.Entry[T]) (base uint64, lost bool, err error) {
	w, ok, err := t.latest(ctx, key)
	if err != nil || fateOf(e, w, ok) == hasIt {
		return 0, false, err
	}
	last, err := t.leader.Last(ctx)
	if err != nil {
		return 0, false, err
	}
	if !ok && last >= e.Revision && !t.touch.kept() {
		t.refollow() // it may have been removed so long ago that the marker is gone
		return 0, false, nil
	}
	if err := t.overtake(ctx, last, e.Revision); err != nil {
		return 0, false, err
	}
	// A leader that has just made writes is still the leader, so what it has is complete.
	if w, ok, err = t.latest(ctx, key); err != nil {
		return 0, false, err
	}
	if ok {
		base = w.Rev
	}
	switch fateOf(e, w, ok) {
	case hasOlder:
		return base, true, nil
	case hasNewer:
		err := t.rewrite(ctx, written{key, w.Value, w.Removed}, base, 0)
		if err == nil {
			t.log.Warn("the store has lost a write that it had acknowledged, and has a later one", "table", t.name, "key", key, "revision", e.Revision)
		}
		return 0, false, err
	}
	return 0, false, nil
}

// replaced logs that a write that the store had lost has been replaced.
func (t *Table[T]) replaced(key string, rev uint64) {
	t.log.Warn("the store has lost a write that it had acknowledged; it is replaced", "table", t.name, "key", key, "revision", rev)
}

// overtake advances the bucket's revisions from its last one to one that it had before.
func (t *Table[T]) overtake(ctx context.Context, last, rev uint64) error {
	if rev > last && rev-last > overtakeMost {
		return fmt.Errorf("the store of %s is %d writes behind what this node knows", t.name, rev-last)
	}
	ctx, cancel := context.WithTimeout(ctx, overtakeTime)
	defer cancel()
	for last < rev {
		var acks []jetstream.PubAckFuture
		for range min(rev-last, overtakeBatch) {
			ack, err := t.js.PublishMsgAsync(t.message(written{key: overtakenKey, removed: true}), jetstream.WithMsgTTL(bucket.MarkerTTL))
			if err != nil {
				return fmt.Errorf("bring the store of %s up to what it had: %w", t.name, err)
			}
			acks = append(acks, ack)
		}
		for _, ack := range acks {
			select {
			case a := <-ack.Ok():
				last = max(last, a.Sequence)
			case err := <-ack.Err():
				return fmt.Errorf("bring the store of %s up to what it had: %w", t.name, err)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}
