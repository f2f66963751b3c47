package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
)

const noticeSubject = "adit.changed"

// Engine is what tables are stored in.
type Engine interface {
	// Bucket finds the bucket with a name, or creates it.
	Bucket(ctx context.Context, name string) (jetstream.KeyValue, error)
	JetStream() jetstream.JetStream
	// Alone reports whether there are no other nodes.
	Alone() bool
}

// Config configures a Set.
type Config struct {
	Engine Engine
	// Urgent are the tables whose writes nodes also report to each other directly.
	Urgent []string
	// Living are the tables that say which nodes are running. They are written to even if the
	// store was lost.
	Living []string
	Took   *bucket.Meter // measures writes
	Log    *slog.Logger
}

// Set is the tables of a store. They learn together of other nodes' writes.
type Set struct {
	cfg   Config
	heard *nats.Subscription           // to other nodes' notices
	wrote atomic.Pointer[func(Change)] // called with own writes; nil: nobody
	work  sync.WaitGroup               // following the buckets

	conditions conditions

	mu     sync.Mutex
	byName map[string]followed
}

// followed is what a Set needs of its tables.
type followed interface {
	refollow()
	keepUp(context.Context) error
	told(Change)
	noticed(notice)
}

// NewSet returns a set without tables; Open adds them.
func NewSet(cfg Config) *Set {
	s := &Set{cfg: cfg, byName: make(map[string]followed)}
	s.Of("", func(context.Context) (string, error) { return "", nil })
	return s
}

// Change is a write as nodes report it to each other outside the cluster. A node whose server
// hangs would otherwise not learn of a write for up to fifteen seconds.
type Change struct {
	Table    string          `json:"table"`
	Key      string          `json:"key"`
	Revision uint64          `json:"revision"` // of the value or the removal
	Removed  bool            `json:"removed,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	Store    string          `json:"store,omitempty"` // that the revision belongs to
}

// OnWrite makes the set call f for this node's own writes that others should learn of at once,
// after they have been acknowledged. f must not block.
func (s *Set) OnWrite(f func(Change)) {
	told := func(c Change) {
		if slices.Contains(s.cfg.Urgent, c.Table) {
			f(c)
		}
	}
	s.wrote.Store(&told)
}

// Told takes in what another node has written to this store. Revisions decide: what is already
// known, or older than what is known, has no effect.
func (s *Set) Told(c Change) {
	if c.Store != "" && s.ID() != "" && c.Store != s.ID() {
		return // from a node that is still running after the previous store was lost
	}
	if !slices.Contains(s.cfg.Urgent, c.Table) || c.Key == "" || c.Revision == 0 {
		return
	}
	if t := s.named(c.Table); t != nil {
		t.told(c)
	}
}

// named returns the table with a name, or nil.
func (s *Set) named(name string) followed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[name]
}

func (s *Set) all() []followed {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]followed, 0, len(s.byName))
	for _, t := range s.byName {
		list = append(list, t)
	}
	return list
}

// FollowAnew makes all tables begin new watches. After a reconnection, the old ones may be
// silent for a long time.
func (s *Set) FollowAnew() {
	for _, t := range s.all() {
		t.refollow()
	}
}

// Close stops the notices and waits for all tables, whose life must have ended.
func (s *Set) Close() {
	if s.heard != nil {
		_ = s.heard.Unsubscribe() // ends with the connection anyway
	}
	s.work.Wait()
}

// notice announces a write to other nodes. A watch brings the same, but if its server has
// died, it takes many seconds of silence to notice.
type notice struct {
	Table    string `json:"table"`
	Key      string `json:"key"`
	Revision uint64 `json:"revision"` // of the value or the removal
	Removed  bool   `json:"removed,omitempty"`
}

// Listen receives other nodes' notices until Close.
func (s *Set) Listen() error {
	sub, err := s.cfg.Engine.JetStream().Conn().Subscribe(noticeSubject, func(m *nats.Msg) {
		if len(m.Data) == 0 { // from a node that starts a relay and looks for others, which may also receive notices
			_ = s.cfg.Engine.JetStream().Conn().Publish(noticeSubject, []byte("{}")) // it asks again if this is lost
			return
		}
		var n notice
		if json.Unmarshal(m.Data, &n) != nil {
			return
		}
		if t := s.named(n.Table); t != nil {
			t.noticed(n)
		}
	})
	if err != nil {
		return fmt.Errorf("follow the changes of other nodes: %w", err)
	}
	s.heard = sub
	return nil
}

// listenTime is how long another node may take to say that it is listening.
const listenTime = 500 * time.Millisecond

// Others says who listens to notices.
type Others int

// Kinds of listeners.
const (
	Nobody   Others = iota
	Somebody        // somebody who does not answer like a node, such as a program that subscribes to everything
	OtherNode
)

// Others finds out who is listening to notices. This set must not be listening yet.
func (s *Set) Others(ctx context.Context) (Others, error) {
	ask, cancel := context.WithTimeout(ctx, listenTime)
	defer cancel()
	conn := s.cfg.Engine.JetStream().Conn()
	// If nobody receives an empty notice, the server says so.
	switch _, err := conn.RequestWithContext(ask, noticeSubject, nil); {
	case errors.Is(err, nats.ErrNoResponders):
		return Nobody, nil
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		return Nobody, fmt.Errorf("ask for other nodes: %w", err)
	}
	others, err := s.answered(ctx, conn)
	if err != nil {
		return Nobody, fmt.Errorf("ask for other nodes: %w", err)
	}
	return others, nil
}

// answered asks for an answer on the subject of the notices, since not everybody may be
// allowed to publish elsewhere.
func (s *Set) answered(ctx context.Context, conn *nats.Conn) (Others, error) {
	ctx, cancel := context.WithTimeout(ctx, listenTime)
	defer cancel()
	sub, err := conn.SubscribeSync(noticeSubject)
	if err != nil {
		return Nobody, err
	}
	defer func() { _ = sub.Unsubscribe() }() // ends with the connection anyway
	if err := conn.Publish(noticeSubject, nil); err != nil {
		return Nobody, err
	}
	for {
		switch m, err := sub.NextMsgWithContext(ctx); {
		case errors.Is(err, context.DeadlineExceeded):
			return Somebody, nil
		case err != nil:
			return Nobody, err
		case len(m.Data) > 0:
			return OtherNode, nil
		}
	}
}

// notify announces a write to other nodes. A node that does not get the notice learns of the
// write from its watch.
func (s *Set) notify(n notice, value []byte) {
	if s.cfg.Engine.Alone() {
		return // there are no other nodes
	}
	if wrote := s.wrote.Load(); wrote != nil {
		(*wrote)(Change{Table: n.Table, Key: n.Key, Revision: n.Revision, Removed: n.Removed, Value: value, Store: s.ID()})
	}
	if data, err := json.Marshal(n); err == nil {
		_ = s.cfg.Engine.JetStream().Conn().Publish(noticeSubject, data)
	}
}
