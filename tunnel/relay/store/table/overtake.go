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
	// overtakeMost is how many writes a store may have lost for its revisions to be
	// brought up to those before.
	overtakeMost  = 1 << 18
	overtakeBatch = 256
	overtakeTime  = 10 * time.Second // a later try goes on
	// overtakenKey is where the messages are that nobody wants but for their revisions.
	overtakenKey = "_overtaken"
	// clocksApart is how far the clocks of the servers of one cluster may be apart.
	clocksApart = 2 * time.Second
)

// overLost writes a value in place of a revision that is known here and that the store
// has lost: servers that lose their power together lose what they had not synced. done is
// false if it has not, so that the write is in conflict with another.
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

// removeLost is overLost for the removal of what the store has lost.
func (t *Table[T]) removeLost(ctx context.Context, key string, rev uint64) (done bool, err error) {
	base, lost, err := t.lost(ctx, key, t.known(key, rev))
	if err != nil || !lost {
		return false, err
	}
	// Other nodes have it, too, so it is said to be removed also where nothing is.
	if _, err = t.publish(ctx, t.message(written{key: key, removed: true}), base); err != nil {
		return false, err
	}
	t.replaced(key, rev)
	return true, nil
}

// known is what is known here of a revision of a key.
func (t *Table[T]) known(key string, rev uint64) replica.Entry[T] {
	if e, ok := t.memory.Entry(key); ok && e.Revision == rev {
		return e
	}
	return replica.Entry[T]{Revision: rev}
}

// message is what is to be under a key, to be published.
func (t *Table[T]) message(v written) *nats.Msg {
	m := nats.NewMsg("$KV." + t.kv.Bucket() + "." + v.key)
	m.Data = v.value
	if v.removed {
		m.Header.Set("KV-Operation", "PURGE")
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	return m
}

// publish publishes a message in place of the revision base of its key, 0 for nothing.
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

// fate is what has become in the store of what is known here of a key.
type fate int

const (
	hasIt    fate = iota // or what is newer
	hasOlder             // or nothing
	hasNewer             // by a revision that does not say so
)

// fateOf compares what is known of a key with what the store has; false: nothing. Of two
// writes of one revision the store's came after the other was lost, and so it is with one
// of a lower revision that is younger: a node that had just begun knew nothing of what was
// lost. What was written again is as old as what it says.
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

// isSame reports whether what is known and what the store has by one revision is one write.
func isSame[T any](e replica.Entry[T], w leader.Written) bool {
	if !e.Written.IsZero() {
		return e.Written.Equal(w.Time)
	}
	data, err := json.Marshal(e.Value)
	return err != nil || e.Removed == w.Removed && (e.Removed || bytes.Equal(data, w.Value))
}

// lost finds out whether the store has lost what is known here of a key, and what it has
// of the key instead; 0: nothing. What is written next is newer then than all that anybody
// knows of the key. What came after the loss is written anew, for all nodes to take it.
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
		t.refollow() // it may have been removed so long ago that there is no mark of it any more
		return 0, false, nil
	}
	if err := t.overtake(ctx, last, e.Revision); err != nil {
		return 0, false, err
	}
	// A leader that has just made writes is one, and what it has is all there is.
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

// replaced tells that there is something in place of what the store has lost.
func (t *Table[T]) replaced(key string, rev uint64) {
	t.log.Warn("the store has lost a write that it had acknowledged; it is replaced", "table", t.name, "key", key, "revision", rev)
}

// overtake brings the bucket's revisions from the last it has to one that it had before.
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
