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

// Engine is where tables are kept.
type Engine interface {
	// Bucket makes the bucket of a name, or finds it.
	Bucket(ctx context.Context, name string) (jetstream.KeyValue, error)
	JetStream() jetstream.JetStream
	// Alone reports whether there is no other node.
	Alone() bool
}

// Config is what a Set is made of.
type Config struct {
	Engine Engine
	// Urgent are the tables whose writes nodes tell each other beside the engine.
	Urgent []string
	// Living are those that tell what nodes are there: they are written to also where the
	// store was lost.
	Living []string
	Took   *bucket.Meter // of writes
	Log    *slog.Logger
}

// Set is the tables of a store, which hear of other nodes' writes together.
type Set struct {
	cfg   Config
	heard *nats.Subscription           // of other nodes' notices
	wrote atomic.Pointer[func(Change)] // is told of own writes; nil: nobody
	work  sync.WaitGroup               // the tables' following

	conditions conditions

	mu     sync.Mutex
	byName map[string]followed
}

// followed is what a Set does with its tables.
type followed interface {
	refollow()
	keepUp(context.Context) error
	told(Change)
	noticed(notice)
}

// NewSet makes a set without tables; Open adds them.
func NewSet(cfg Config) *Set {
	s := &Set{cfg: cfg, byName: make(map[string]followed)}
	s.Of("", func(context.Context) (string, error) { return "", nil })
	return s
}

// Change is a write as its node tells it to the others beside the cluster: a node
// whose server of the cluster hangs hears of a write by no other way for up to
// fifteen seconds.
type Change struct {
	Table    string          `json:"table"`
	Key      string          `json:"key"`
	Revision uint64          `json:"revision"` // written, or removed
	Removed  bool            `json:"removed,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	Store    string          `json:"store,omitempty"` // that the revision is of
}

// OnWrite has f told of this node's own writes that others should know of at
// once, after they were acknowledged. f must not wait.
func (s *Set) OnWrite(f func(Change)) {
	told := func(c Change) {
		if slices.Contains(s.cfg.Urgent, c.Table) {
			f(c)
		}
	}
	s.wrote.Store(&told)
}

// Told takes what another node has written to this store. The bucket's revisions decide:
// what is known already, or is older than what is known, changes nothing.
func (s *Set) Told(c Change) {
	if c.Store != "" && s.ID() != "" && c.Store != s.ID() {
		return // by a node that runs on after the store before was lost
	}
	if !slices.Contains(s.cfg.Urgent, c.Table) || c.Key == "" || c.Revision == 0 {
		return
	}
	if t := s.named(c.Table); t != nil {
		t.told(c)
	}
}

// named is a table; nil where there is none.
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

// FollowAnew has all tables begin new watches: after a reconnection the old ones
// may be silent for a long time.
func (s *Set) FollowAnew() {
	for _, t := range s.all() {
		t.refollow()
	}
}

// Close ends the notices, and waits for all tables whose life has ended.
func (s *Set) Close() {
	if s.heard != nil {
		_ = s.heard.Unsubscribe() // the connection's end does as much
	}
	s.work.Wait()
}

// notice tells other nodes of a write. A watch brings the same, but one whose
// server has died knows that only after many seconds of silence.
type notice struct {
	Table    string `json:"table"`
	Key      string `json:"key"`
	Revision uint64 `json:"revision"` // written, or removed
	Removed  bool   `json:"removed,omitempty"`
}

// Listen takes other nodes' notices, until Close.
func (s *Set) Listen() error {
	sub, err := s.cfg.Engine.JetStream().Conn().Subscribe(noticeSubject, func(m *nats.Msg) {
		if len(m.Data) == 0 { // who begins a relay looks for others, and hears notices meanwhile
			_ = s.cfg.Engine.JetStream().Conn().Publish(noticeSubject, []byte("{}")) // it asks again
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

// listenTime is how long another node may take to say that it listens.
const listenTime = 500 * time.Millisecond

// Others is who listens to notices.
type Others int

// Kinds of others.
const (
	Nobody   Others = iota
	Somebody        // who does not answer as nodes do, such as a program that listens to all
	OtherNode
)

// Others finds out who listens to notices now. This set must not, yet.
func (s *Set) Others(ctx context.Context) (Others, error) {
	ask, cancel := context.WithTimeout(ctx, listenTime)
	defer cancel()
	conn := s.cfg.Engine.JetStream().Conn()
	// Where nobody hears an empty notice, the server says so.
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

// answered asks for notices, which nodes give where notices go: not all may send elsewhere.
func (s *Set) answered(ctx context.Context, conn *nats.Conn) (Others, error) {
	ctx, cancel := context.WithTimeout(ctx, listenTime)
	defer cancel()
	sub, err := conn.SubscribeSync(noticeSubject)
	if err != nil {
		return Nobody, err
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection's end does as much
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

// notify tells other nodes of a write. A node that it does not reach learns of the
// write by its watch.
func (s *Set) notify(n notice, value []byte) {
	if s.cfg.Engine.Alone() {
		return // there is no other node
	}
	if wrote := s.wrote.Load(); wrote != nil {
		(*wrote)(Change{Table: n.Table, Key: n.Key, Revision: n.Revision, Removed: n.Removed, Value: value, Store: s.ID()})
	}
	if data, err := json.Marshal(n); err == nil {
		_ = s.cfg.Engine.JetStream().Conn().Publish(noticeSubject, data)
	}
}
