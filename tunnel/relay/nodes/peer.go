package nodes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

type accessEvent struct {
	session string
	access  wire.Access
}

// peer is another node: this one keeps a session with it.
type peer struct {
	mesh   *Mesh
	id     string
	kick   chan struct{} // tells run to dial at once; room for one
	access chan accessEvent

	sessions sync.Map // id → *Session, for datagrams

	mu       sync.Mutex
	node     Node
	wanted   bool
	link     link.Session // nil without one
	whole    bool         // the node has told all
	draining bool
}

func newPeer(m *Mesh, n Node) *peer {
	return &peer{mesh: m, id: n.ID, node: n, wanted: true, kick: make(chan struct{}, 1), access: make(chan accessEvent, accessQueue)}
}

// know takes what the node says of itself.
func (p *peer) know(n Node) {
	p.mu.Lock()
	news := !p.wanted || p.node != n
	p.node, p.wanted = n, true
	p.mu.Unlock()
	if news {
		select {
		case p.kick <- struct{}{}:
		default:
		}
	}
}

func (p *peer) unwant() {
	p.mu.Lock()
	p.wanted = false
	p.mu.Unlock()
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

func (p *peer) isWanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

func (p *peer) state() PeerState {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PeerState{Connected: p.link != nil && p.whole, Draining: p.draining}
	if p.link != nil {
		s.RTT = p.link.Stats().RTT
	}
	return s
}

// run keeps a session with the node until ctx ends, or nobody names it any more
// and it does not answer.
func (p *peer) run(ctx context.Context) {
	m := p.mesh
	pause := firstPause
	level := slog.LevelInfo // it is news once, and not again while the node stays out of reach
	for ctx.Err() == nil {
		begin := time.Now()
		held, err := p.hold(ctx)
		if ctx.Err() != nil {
			return
		}
		if held {
			level = slog.LevelInfo
		}
		m.log.Log(ctx, level, "no session with a node", "node", p.id, "error", err)
		level = slog.LevelDebug
		if m.forget(p) {
			m.cfg.Far.NodeChanged(p.id)
			return
		}
		if time.Since(begin) > maxPause {
			pause = firstPause
		}
		wait := time.NewTimer(pause + rand.N(pause))
		pause = min(2*pause, maxPause)
		select {
		case <-wait.C:
		case <-p.kick:
			wait.Stop()
			pause = firstPause
		case <-ctx.Done():
			wait.Stop()
		}
	}
}

// hold makes a session and follows the node's table until it ends. held is
// whether there was one.
func (p *peer) hold(ctx context.Context) (held bool, err error) {
	m := p.mesh
	p.mu.Lock()
	addr := p.node.Address
	p.mu.Unlock()
	cert, err := m.cfg.Certificate()
	if err != nil {
		return false, err
	}
	dial, cancel := context.WithTimeout(ctx, dialTime)
	s, err := link.Dial(dial, link.DialConfig{
		Relay: addr, Fingerprint: m.cfg.Fingerprint, Certificate: cert, Transport: link.TLS,
		KeepAlive: keepAlive, MaxStreams: maxStreams, NoWatch: true, Logger: m.log,
		Proxy: func(string) (*url.URL, error) { return nil, nil },
	})
	cancel()
	if err != nil {
		return false, err
	}
	ctx, cancel = context.WithCancel(ctx)
	pool := controlPool(s)
	var wg sync.WaitGroup
	defer func() {
		cancel()
		s.Close("the node ends")
		pool.CloseIdleConnections()
		wg.Wait()
		p.lost(s)
	}()
	p.mu.Lock()
	p.link, p.whole, p.draining = s, false, false
	p.mu.Unlock()
	client := &http.Client{Transport: pool}
	wg.Go(func() { p.receive(ctx, s) })
	wg.Go(func() { p.tell(ctx, client) })
	err = p.follow(ctx, s, client)
	if ended := s.Err(); ended != nil {
		err = ended
	}
	return true, err
}

// controlPool opens control streams.
func controlPool(s link.Session) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			st, err := s.OpenStream(ctx)
			if err != nil {
				return nil, err
			}
			if _, err := st.Write([]byte{streamControl}); err != nil {
				st.Reset()
				return nil, err
			}
			return st, nil
		},
		DisableCompression: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
	}
}

// lost ends what the node had.
func (p *peer) lost(s link.Session) {
	err := s.Err()
	if err == nil {
		err = net.ErrClosed
	}
	p.mu.Lock()
	p.link, p.whole = nil, false
	p.mu.Unlock()
	p.sessions.Range(func(id, v any) bool {
		far := v.(*Session)
		far.end(fmt.Errorf("session with node %s: %w", p.id, err))
		p.mesh.cfg.Far.SessionDown(far)
		p.sessions.Delete(id)
		return true
	})
	p.mesh.cfg.Far.NodeChanged(p.id)
}

// follow reads the node's table until it ends.
func (p *peer) follow(ctx context.Context, s link.Session, client *http.Client) error {
	// The session's end must not wait for a reader that is told of it last.
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		select {
		case <-s.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://node"+pathTable, nil)
	if err != nil {
		return err
	}
	req.Header.Set(headerNode, p.mesh.cfg.ID)
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask node %s for its table: %w", p.id, err)
	}
	defer res.Body.Close()
	if id := res.Header.Get(headerNode); id != p.id || res.StatusCode != http.StatusOK {
		return fmt.Errorf("ask node %s for its table: node %q answers with status %d", p.id, id, res.StatusCode)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("a line of node %s does not parse: %w", p.id, err)
		}
		p.take(s, l)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

func (p *peer) session(id string) *Session {
	v, ok := p.sessions.Load(id)
	if !ok {
		return nil
	}
	return v.(*Session)
}

// take does what a line of the node's table says. What does not fit is left out:
// a newer node may say more.
func (p *peer) take(link link.Session, l line) {
	far := p.mesh.cfg.Far
	switch {
	case l.Op == opSession && l.Agent != nil && len(l.Agent.Session) > 0 && len(l.Agent.Session) <= maxID:
		if p.session(l.Agent.Session) != nil {
			return
		}
		s := newSession(p, link, *l.Agent)
		p.sessions.Store(l.Agent.Session, s)
		far.SessionUp(s)
	case l.Op == opGone:
		if s := p.session(l.Session); s != nil {
			s.end(ErrNoSession)
			p.sessions.Delete(l.Session)
			far.SessionDown(s)
		}
	case l.Op == opTunnel && l.Tunnel != nil:
		if s := p.session(l.Tunnel.Session); s != nil {
			far.TunnelUp(s, *l.Tunnel)
		}
	case l.Op == opWithdrawn:
		if s := p.session(l.Session); s != nil {
			far.TunnelDown(s, l.Key)
		}
	case l.Op == opChanged && len(l.Change) > 0:
		if age := time.Duration(l.Age) * time.Millisecond; age >= 0 && age < recentTime {
			p.mesh.table.heard(l.Change, age)
		}
		far.Changed(l.Change)
	case l.Op == opWhole, l.Op == opDrain:
		p.mu.Lock()
		p.whole = p.whole || l.Op == opWhole
		p.draining = p.draining || l.Op == opDrain
		p.mu.Unlock()
		p.mesh.log.Info("node tells", "node", p.id, "what", l.Op)
		far.NodeChanged(p.id)
	}
}

// receive hands on what agents on the node send to UDP visitors here.
func (p *peer) receive(ctx context.Context, s link.Session) {
	_ = link.ServeDatagrams(ctx, s, func(list [][]byte) { // it ends with the session
		for _, b := range list {
			id, rest, err := cutSession(b)
			if err != nil {
				continue
			}
			if far := p.session(string(id)); far != nil {
				p.mesh.cfg.Far.Datagram(far, rest)
			}
		}
	})
}

// tell brings access events to the node, in turns.
func (p *peer) tell(ctx context.Context, client *http.Client) {
	for {
		var list []accessLine
		select {
		case e := <-p.access:
			list = append(list, accessLine{e.session, e.access})
		case <-ctx.Done():
			return
		}
		turn := time.NewTimer(accessTurn)
	gather:
		for len(list) < accessBatch {
			select {
			case e := <-p.access:
				list = append(list, accessLine{e.session, e.access})
			case <-turn.C:
				break gather
			case <-ctx.Done():
				turn.Stop()
				return
			}
		}
		turn.Stop()
		answer, err := post(ctx, client, list)
		for _, id := range answer.Unwanted {
			if s := p.session(id); s != nil {
				s.mute.Store(true)
			}
		}
		if err != nil && ctx.Err() == nil {
			p.mesh.log.Debug("access events did not reach the agent's node", "node", p.id, "count", len(list), "error", err)
		}
	}
}

func post(ctx context.Context, client *http.Client, list []accessLine) (answer accessAnswer, err error) {
	data, err := json.Marshal(list)
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node"+pathAccess, bytes.NewReader(data))
	if err != nil {
		return answer, err
	}
	res, err := client.Do(req)
	if err != nil {
		return answer, err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return answer, errors.New(res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAccess)).Decode(&answer); err != nil && err != io.EOF { // older nodes answer nothing
		return answer, err
	}
	return answer, nil
}
