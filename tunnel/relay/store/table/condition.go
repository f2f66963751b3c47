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

// keepUpEvery is how often a node asks whether its watches have brought all there is.
const keepUpEvery = 5 * time.Second

// Condition is how a store is that nodes share.
type Condition string

// Conditions of a store.
const (
	Here Condition = "here"
	// Silent is a store of which a part does not answer: nothing can be changed there now.
	Silent Condition = "silent"
	// Full is a store that has no room for what is written.
	Full Condition = "full"
	// Lost is one of which a part is not there any more, or in whose place there is another:
	// another relay's, or what was restored. What is known of it stays in memory.
	Lost Condition = "lost"
)

// conditions are what a Set finds out about its store.
type conditions struct {
	id    string                                // see Set.Of
	which func(context.Context) (string, error) // its id now

	mu   sync.Mutex
	last Condition // when it was asked last
	now  Condition // when it was asked last but one, and since; empty: Here
}

// Of says which store the tables are of, by an id that is made with it, and has KeepUp
// ask for it: another answer says that another store is in its place, as one that was
// brought back and that no node has begun yet, which has none. It is called before a table
// is opened.
func (s *Set) Of(id string, which func(context.Context) (string, error)) {
	s.conditions.id, s.conditions.which = id, which
}

// ID is which store the tables are of; empty where Of did not say.
func (s *Set) ID() string { return s.conditions.id }

// Condition is what the store is like, as KeepUp has found twice, so that a server that
// has just started and does not know its buckets yet is not believed.
func (s *Set) Condition() Condition {
	s.conditions.mu.Lock()
	defer s.conditions.mu.Unlock()
	if s.conditions.now == "" {
		return Here
	}
	return s.conditions.now
}

// KeepUp reads from the buckets' leaders what the watches do not bring, now and until
// life ends. Any server that keeps a bucket serves watches of it, and one that lost its
// way in a crash serves old values for minutes and does not know.
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

// refuse returns bucket.ErrLost if the store is lost: what has another store's revision
// is not taken into memory, and would be said to be done and not be in force.
func (s *Set) refuse(table string) error {
	if s.Condition() != Lost || s.living(table) {
		return nil
	}
	return bucket.ErrLost
}

func (s *Set) living(table string) bool { return slices.Contains(s.cfg.Living, table) }

var errAnother = errors.New("another store is in the place of the one that was opened")

// ask has each table keep up, all at once, as each may wait for a leader that does not
// answer, and returns the worst of what that says of the store.
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

// theirs returns errAnother if the store is another than it was.
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

// conditionOf is what an error says that came of asking.
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

// found takes in what the store is like, and tells of it once it was so twice.
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
