package table

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
)

const (
	// overtakeMost is how many writes a store may have lost for its revisions to be
	// brought up to those before.
	overtakeMost  = 1 << 18
	overtakeBatch = 256
	overtakeTime  = 10 * time.Second // a later try goes on
	// overtakenKey is where the messages are that nobody wants but for their revisions.
	overtakenKey = "_overtaken"
)

// overLost writes a value in place of a revision that is known here and that the store
// has lost: servers that lose their power together lose what they had not synced. done is
// false if it has not, so that the write is in conflict with another.
func (t *Table[T]) overLost(ctx context.Context, key string, data []byte, rev uint64) (next uint64, done bool, err error) {
	base, lost, err := t.lost(ctx, key, rev)
	if err != nil || !lost {
		return 0, false, err
	}
	next, _, err = bucket.Again(ctx, func(ctx context.Context) (uint64, error) { return t.kv.Update(ctx, key, data, base) })
	if bucket.IsConflict(err) {
		return 0, false, nil
	}
	return next, err == nil, err
}

// removeLost is overLost for the removal of what the store has lost.
func (t *Table[T]) removeLost(ctx context.Context, key string, rev uint64) (done bool, err error) {
	base, lost, err := t.lost(ctx, key, rev)
	if err != nil || !lost {
		return false, err
	}
	// Other nodes have it, too, so it is said to be removed also where nothing is.
	_, err = t.js.PublishMsg(ctx, t.removal(key), jetstream.WithMsgTTL(bucket.MarkerTTL), jetstream.WithExpectLastSequencePerSubject(base))
	return err == nil, err
}

// removal is the message that removes a key's value.
func (t *Table[T]) removal(key string) *nats.Msg {
	m := nats.NewMsg("$KV." + t.kv.Bucket() + "." + key)
	m.Header.Set("KV-Operation", "PURGE")
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	return m
}

// lost finds out whether the store has lost the revision of a key that is known here, and
// what it has of the key instead; 0: nothing. What is written next is newer then than all
// that anybody knows of the key.
func (t *Table[T]) lost(ctx context.Context, key string, rev uint64) (base uint64, lost bool, err error) {
	w, ok, err := t.latest(ctx, key)
	if err != nil || ok && w.Rev >= rev {
		return 0, false, err
	}
	last, err := t.leader.Last(ctx)
	if err != nil {
		return 0, false, err
	}
	if !ok && last >= rev && !t.touch.kept() {
		t.refollow() // it may have been removed so long ago that there is no mark of it any more
		return 0, false, nil
	}
	if err := t.overtake(ctx, last, rev); err != nil {
		return 0, false, err
	}
	// A leader that has just made writes is one, and what it has is all there is.
	if w, ok, err = t.latest(ctx, key); err != nil || ok && w.Rev >= rev {
		return 0, false, err
	}
	t.log.Warn("the store has lost a write that it had acknowledged; it is replaced", "table", t.name, "key", key, "revision", rev)
	if ok {
		base = w.Rev
	}
	return base, true, nil
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
			ack, err := t.js.PublishMsgAsync(t.removal(overtakenKey), jetstream.WithMsgTTL(bucket.MarkerTTL))
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
