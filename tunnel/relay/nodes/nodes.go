// Package nodes lets the nodes of one relay serve each other's visitors: each
// keeps a session with every other one, over which it learns what agents are
// connected there and reaches them as if they were here. Who may have a name and
// what a visitor may do is decided above it. docs/protocol/nodes.md has what
// goes over the wire.
package nodes

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

const (
	// keepAlive makes a node that is silent known as dead after three of them.
	// One whose process ended is known at once: its connection is reset.
	keepAlive   = time.Second
	dialTime    = 5 * time.Second
	firstPause  = 50 * time.Millisecond
	maxPause    = 2 * time.Second
	openTime    = 10 * time.Second
	maxStreams  = 1 << 17 // of one session between nodes
	maxLine     = 64 << 10
	maxTold     = maxLine - 1024 // of a change, with what a line has around it
	accessQueue = 4096
	accessBatch = 256
	accessTurn  = 50 * time.Millisecond
)

// ErrNoSession is what a stream to a session gives that has ended.
var ErrNoSession = errors.New("the agent's session has ended")

// Agent is an agent's session on the node that tells of it.
type Agent struct {
	Session  string `json:"session"` // id
	ClientID string `json:"client_id"`
	Instance string `json:"instance"`
	// Beside is the node that the agent said, as it came, that it has another session
	// with. Empty: with none, or the node that tells does not know.
	Beside string `json:"beside,omitempty"`
}

// Tunnel is a tunnel that a session serves.
type Tunnel struct {
	Session string     `json:"session"`
	Key     string     `json:"key"`
	Number  uint32     `json:"number"` // within the session
	Claim   wire.Claim `json:"claim"`
	Target  string     `json:"target"`
	Slot    string     `json:"slot"`
	Domain  string     `json:"domain,omitempty"`
	Port    int        `json:"port,omitempty"`
	// PolicyRevision is that of the target's policy that the node knew when it put the
	// tunnel up; 0: none. Who knows less of policies has to learn of it first.
	PolicyRevision uint64 `json:"policy_revision,omitempty"`
	// Store is that which PolicyRevision is of; empty: not told.
	Store string `json:"store,omitempty"`
}

// Equal reports whether two are the same in all.
func (t Tunnel) Equal(o Tunnel) bool { return reflect.DeepEqual(t, o) }

// Flow carries one UDP visitor's packets to an agent.
type Flow interface {
	Send(payload []byte)
	// From tells the agent whose the flow is.
	From(who wire.From)
	// Withheld tells the agent that an answer was not passed on.
	Withheld()
	Close()
}

// Local is what this node does for others. Its methods may be called from
// several goroutines.
type Local interface {
	// OpenStream opens a stream to an agent, or returns ErrNoSession.
	OpenStream(ctx context.Context, session string) (link.Stream, error)
	// Flow begins a UDP visitor's flow; nil if the session has ended. answer and
	// over must not wait.
	Flow(session string, endpoint uint32, answer func(payload []byte), over func()) Flow
	// Access takes the events of visitors that another node has recorded, and
	// reports whether the agent wants any.
	Access(session string, list []wire.Access) (wanted bool)
}

// Far is told of what other nodes have. Of one node it is told in order, and
// what a node had has ended when its session has.
type Far interface {
	SessionUp(s *Session)
	SessionDown(s *Session)
	TunnelUp(s *Session, t Tunnel)
	TunnelDown(s *Session, key string)
	// NodeChanged tells that a node came, went or drains.
	NodeChanged(node string)
	// Changed brings what another node has written to the store: what Tell was given.
	Changed(change []byte)
	// Datagram brings a packet of wire.Flow's form for a visitor here.
	Datagram(s *Session, b []byte)
}

// Config is what a Mesh works with; all but Log is required.
type Config struct {
	ID          string // of this node
	Fingerprint [32]byte
	Certificate func() (*tls.Certificate, error) // of link.Authority.IssueNode
	Listener    net.Listener
	Local       Local
	Far         Far
	// Memory bounds what has come from another node, for or from any of its agents, and
	// waits for readers. If zero, 1 GiB.
	Memory int64
	Log    *slog.Logger // may be nil
}

// Node says where another node is.
type Node struct{ ID, Address string }

// Mesh is this node's end of the sessions with all others.
type Mesh struct {
	cfg      Config
	log      *slog.Logger
	listener *link.Listener
	table    table
	relayed  counter // visitors' streams of other nodes
	dial     func(context.Context, link.DialConfig) (link.Session, error)
	wornLook time.Duration

	mu    sync.Mutex
	peers map[string]*peer
	life  context.Context // of Run; nil before
	wg    sync.WaitGroup
	ended bool
}

// New opens the listener; Run serves.
func New(cfg Config) (*Mesh, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Memory == 0 {
		cfg.Memory = 1 << 30
	}
	m := &Mesh{cfg: cfg, log: cfg.Log, peers: make(map[string]*peer), dial: link.Dial, wornLook: wornLook}
	var err error
	m.listener, err = link.Listen(link.ListenConfig{
		TCP: cfg.Listener, GetCertificate: cfg.Certificate, Peers: &cfg.Fingerprint,
		KeepAlive: keepAlive, MaxStreams: maxStreams, MaxSessions: 1024, Memory: cfg.Memory, Logger: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Close closes the listener of a mesh that is not run.
func (m *Mesh) Close() error { return m.listener.Close() }

// Addr is where other nodes find this one.
func (m *Mesh) Addr() net.Addr { return m.listener.Addr() }

// Run serves other nodes and keeps sessions with those that Know names, until
// ctx ends.
func (m *Mesh) Run(ctx context.Context) error {
	m.mu.Lock()
	m.life = ctx
	for _, p := range m.peers {
		m.wg.Go(func() { p.run(ctx) })
	}
	m.mu.Unlock()
	var serving sync.WaitGroup
	for {
		s, err := m.listener.Accept(ctx)
		if err != nil {
			break
		}
		serving.Go(func() { m.serve(ctx, s) })
	}
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.listener.Close()
	serving.Wait()
	m.wg.Wait()
	return nil
}

// Know tells which other nodes there are. A session with one that is not named
// any more is kept as long as it lives.
func (m *Mesh) Know(list []Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return
	}
	wanted := map[string]bool{}
	for _, n := range list {
		if n.ID == m.cfg.ID || n.Address == "" {
			continue
		}
		wanted[n.ID] = true
		p := m.peers[n.ID]
		if p == nil {
			p = newPeer(m, n)
			m.peers[n.ID] = p
			if life := m.life; life != nil {
				m.wg.Go(func() { p.run(life) })
			}
			continue
		}
		p.know(n)
	}
	for id, p := range m.peers {
		if !wanted[id] {
			p.unwant()
		}
	}
}

// forget removes a peer that nobody names; it reports whether it is so.
func (m *Mesh) forget(p *peer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.isWanted() {
		return false
	}
	if m.peers[p.id] == p {
		delete(m.peers, p.id)
	}
	return true
}

// PeerState is a snapshot of the session with another node.
type PeerState struct {
	Connected bool // and it has told all that it has
	Draining  bool
	StoreAway bool // it cannot reach the store
	RTT       time.Duration
}

// Peers returns the state of all nodes that are known.
func (m *Mesh) Peers() map[string]PeerState {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]PeerState, len(m.peers))
	for id, p := range m.peers {
		all[id] = p.state()
	}
	return all
}

// AgentUp, AgentDown, TunnelUp and TunnelDown tell other nodes what is here.
func (m *Mesh) AgentUp(a Agent)                { m.table.agent(a) }
func (m *Mesh) AgentDown(session string)       { m.table.gone(session) }
func (m *Mesh) TunnelUp(t Tunnel)              { m.table.up(t) }
func (m *Mesh) TunnelDown(session, key string) { m.table.down(session, key) }

// Drain tells other nodes to turn to sessions elsewhere.
func (m *Mesh) Drain() { m.table.drain() }

// StoreAway tells other nodes whether this one cannot reach the store.
func (m *Mesh) StoreAway(away bool) { m.table.storeAway(away) }

// Tell tells other nodes of a change of the store, in JSON, beside the store
// itself. It is left out if it is larger than a line: they have it from the store.
func (m *Mesh) Tell(change []byte) {
	if len(change) <= maxTold {
		m.table.tell(change)
	}
}

// Idle waits until no visitor of another node is served here, or ctx ends.
func (m *Mesh) Idle(ctx context.Context) { m.relayed.wait(ctx) }

// counter counts what is open.
type counter struct{ n atomic.Int64 }

func (c *counter) wait(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for c.n.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
