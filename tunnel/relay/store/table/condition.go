package table

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/leader"
)

// keepUpEvery is how often a node checks whether its watches have brought everything.
const keepUpEvery = 5 * time.Second

// Condition is the state of a store that nodes share.
type Condition string

// Conditions of a store.
const (
	Here Condition = "here"
	// Silent means that a part of the store does not answer: nothing can be changed there now.
	Silent Condition = "silent"
	// Full means that the store has no room for writes.
	Full Condition = "full"
	// Lost means that a part of the store is gone, or has been replaced: by another relay's,
	// or by one that was restored. What is known of it stays in memory.
	Lost Condition = "lost"
)

// conditions is what a Set finds out about its store.
type conditions struct {
	id    string                                // see Set.Of
	which func(context.Context) (string, error) // returns the store's current ID

	mu   sync.Mutex
	last Condition // when last checked
	now  Condition // the condition in force: found twice in a row; empty: Here
}

// Of says which store the tables belong to, by an ID that is created with the store, and makes
// KeepUp check it by calling which. A different answer means that another store has taken its
// place; a store that was restored and not yet started by any node has no ID. Of must be
// called before a table is opened.
func (s *Set) Of(id string, which func(context.Context) (string, error)) {
	s.conditions.id, s.conditions.which = id, which
}

// ID returns the ID of the store that the tables belong to; empty if Of was not called.
func (s *Set) ID() string { return s.conditions.id }

// Condition returns the state of the store that KeepUp has found twice in a row, so that a
// server that has just started and does not know its buckets yet is not believed.
func (s *Set) Condition() Condition {
	s.conditions.mu.Lock()
	defer s.conditions.mu.Unlock()
	if s.conditions.now == "" {
		return Here
	}
	return s.conditions.now
}

// KeepUp reads from the buckets' leaders what the watches do not bring, now and until life
// ends. Any server that keeps a bucket serves watches of it, and one that fell behind in a
// crash may serve old values for minutes without knowing.
func (s *Set) KeepUp(life context.Context) {
	tick := time.NewTicker(keepUpEvery)
	defer tick.Stop()
	for {
		now := s.ask(life)
		if life.Err() == nil {
			s.found(now)
		}
		select {
		case <-tick.C:
		case <-life.Done():
			return
		}
	}
}

// refuse returns bucket.ErrLost if the store is lost. Revisions of another store are not taken
// into memory, so a write to it would be reported as done without taking effect.
func (s *Set) refuse(table string) error {
	if s.Condition() != Lost || s.living(table) {
		return nil
	}
	return bucket.ErrLost
}

func (s *Set) living(table string) bool { return slices.Contains(s.cfg.Living, table) }

var errAnother = errors.New("another store is in the place of the one that was opened")

// ask makes all tables keep up, concurrently, since each may wait for a leader that does not
// answer. It returns the worst condition that results.
func (s *Set) ask(ctx context.Context) Condition {
	all := s.all()
	found := make(chan Condition)
	for _, t := range all {
		go func() { found <- conditionOf(t.keepUp(ctx)) }()
	}
	now := conditionOf(s.theirs(ctx))
	for range all {
		now = worse(now, <-found)
	}
	if now == Here && s.cfg.Took.Full() {
		return Full
	}
	return now
}

// theirs returns errAnother if the store has been replaced.
func (s *Set) theirs(ctx context.Context) error {
	id, err := s.conditions.which(ctx)
	if err == nil && id != s.conditions.id {
		return errAnother
	}
	return err
}

// isOwn reports whether the store says that it is the one that was opened.
func (s *Set) isOwn(ctx context.Context) bool {
	return s.theirs(ctx) == nil
}

// conditionOf returns the condition that follows from the error of a check.
func conditionOf(err error) Condition {
	switch {
	case err == nil:
		return Here
	case errors.Is(err, errAnother), leader.IsGone(err):
		return Lost
	}
	return Silent
}

func worse(a, b Condition) Condition {
	for _, c := range []Condition{Lost, Silent} {
		if a == c || b == c {
			return c
		}
	}
	return Here
}

// found records the result of a check, and reports the condition once it has been found twice.
func (s *Set) found(now Condition) {
	c := &s.conditions
	c.mu.Lock()
	before, twice := c.now, now == c.last
	c.last = now
	if twice {
		c.now = now
	}
	c.mu.Unlock()
	switch {
	case !twice || now == before || now == Here && before == "":
	case now == Lost:
		s.cfg.Log.Error("NATS has lost what the relay kept there; this node serves on what it knows: " +
			"bring the backup back with adit relay restore, into an empty data folder, and then restart the nodes that run, one after another")
	case now == Full:
		s.cfg.Log.Error("NATS has no room for what is written; nothing can be changed until its servers have more, or the limits of the relay's account or streams are raised")
	case now == Silent:
		s.cfg.Log.Warn("the store does not answer for all its parts; what is there cannot be changed until it does")
	default:
		s.cfg.Log.Info("the store answers again", "before", string(before))
	}
}
