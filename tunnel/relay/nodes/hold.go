package nodes

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"adit/tunnel/link"
)

// wornLook is how often it is looked whether a session has used so much of its
// numbers that it is to be replaced: to use up the rest takes many times as long.
const wornLook = time.Hour

// hold is a session with another node, and what that has told over it.
type hold struct {
	peer  *peer
	link  link.Session
	told  chan struct{}      // closed once the node has told all
	ended chan struct{}      // closed when it is not followed any more
	err   error              // why; set before ended is closed
	quiet context.CancelFunc // ends what follows and tells
	stop  context.CancelFunc // ends all
	wg    sync.WaitGroup

	sessions sync.Map // id → *Session

	whole    bool // told is closed; guarded by the peer's mutex
	draining bool // guarded by the peer's mutex
	away     bool // the store is, from the node; guarded likewise
}

// hold makes a session with the node and follows its table, until end is called.
func (p *peer) hold(ctx context.Context) (*hold, error) {
	m := p.mesh
	p.mu.Lock()
	addr := p.node.Address
	p.mu.Unlock()
	cert, err := m.cfg.Certificate()
	if err != nil {
		return nil, err
	}
	dial, cancel := context.WithTimeout(ctx, dialTime)
	s, err := m.dial(dial, link.DialConfig{
		Relay: addr, Fingerprint: m.cfg.Fingerprint, Certificate: cert, Transport: link.TLS,
		KeepAlive: keepAlive, MaxStreams: maxStreams, Memory: m.cfg.Memory, NoWatch: true, Logger: m.log,
		Proxy: func(string) (*url.URL, error) { return nil, nil },
	})
	cancel()
	if err != nil {
		return nil, err
	}
	h := &hold{peer: p, link: s, told: make(chan struct{}), ended: make(chan struct{})}
	ctx, h.stop = context.WithCancel(ctx)
	following, quiet := context.WithCancel(ctx)
	h.quiet = quiet
	p.mu.Lock()
	if p.cur == nil {
		p.cur = h
	}
	p.mu.Unlock()
	pool := controlPool(s)
	client := &http.Client{Transport: pool}
	h.wg.Go(func() { h.receive(ctx) })
	h.wg.Go(func() {
		defer pool.CloseIdleConnections()
		h.tell(following, client)
	})
	h.wg.Go(func() {
		defer close(h.ended)
		h.err = h.follow(following, client)
		if ended := s.Err(); ended != nil {
			h.err = ended
		}
	})
	return h, nil
}

// end closes the session, and ends what the node had.
func (h *hold) end() {
	h.stop()
	_ = h.link.Close("the node ends") // it is over either way
	h.wg.Wait()
	err := h.link.Err()
	if err == nil {
		err = net.ErrClosed
	}
	p := h.peer
	p.mu.Lock()
	if p.cur == h {
		p.cur = nil
	}
	p.mu.Unlock()
	h.sessions.Range(func(id, v any) bool {
		far := v.(*Session)
		far.end(fmt.Errorf("session with node %s: %w", p.id, err))
		p.mesh.cfg.Far.SessionDown(far)
		h.sessions.Delete(id)
		return true
	})
	p.mesh.cfg.Far.NodeChanged(p.id)
}

// keep has h in use until it ends, or the one that has replaced it. Those that were
// replaced fade.
func (p *peer) keep(ctx context.Context, h *hold, fading *sync.WaitGroup) error {
	look := time.NewTicker(p.mesh.wornLook)
	defer look.Stop()
	for {
		select {
		case <-h.ended:
			h.end()
			return h.err
		case <-look.C:
		}
		if !h.link.Stats().Worn {
			continue
		}
		if next := p.replace(ctx, h); next != nil {
			old := h
			fading.Go(func() { old.fade(ctx) })
			h = next
		}
	}
}

// replace makes another session with the node of h, and has it in use once the node
// has told all over it. It returns nil if that cannot be.
func (p *peer) replace(ctx context.Context, h *hold) *hold {
	next, err := p.hold(ctx)
	if err != nil {
		p.mesh.log.Warn("a worn session with a node is not replaced yet", "node", p.id, "error", err)
		return nil
	}
	limit := time.NewTimer(dialTime)
	defer limit.Stop()
	select {
	case <-next.told:
	case <-next.ended:
	case <-limit.C:
	}
	p.mu.Lock()
	good := next.whole
	if good {
		p.cur = next
	}
	p.mu.Unlock()
	if !good {
		next.end()
		p.mesh.log.Warn("a worn session with a node is not replaced yet", "node", p.id, "error", next.err)
		return nil
	}
	p.mesh.log.Info("a worn session with a node is replaced", "node", p.id)
	return next
}

// fade leaves a session that was replaced to the visitors it has, and ends it when
// they have gone.
func (h *hold) fade(ctx context.Context) {
	h.quiet()
	<-h.ended
	h.sessions.Range(func(_, v any) bool {
		h.peer.mesh.cfg.Far.SessionDown(v.(*Session)) // no more visitors; it has not ended for those who are there
		return true
	})
	h.peer.mesh.cfg.Far.NodeChanged(h.peer.id)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for quiet := 0; quiet < 2; {
		select {
		case <-ctx.Done():
			quiet = 2
		case <-h.link.Done():
			quiet = 2
		case <-tick.C:
			if quiet++; h.link.Stats().Streams > 0 {
				quiet = 0
			}
		}
	}
	h.end()
}

// follow reads the node's table until it ends.
func (h *hold) follow(ctx context.Context, client *http.Client) error {
	p := h.peer
	// The session's end must not wait for a reader that is told of it last.
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		select {
		case <-h.link.Done():
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
		h.take(l)
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

func (h *hold) session(id string) *Session {
	v, ok := h.sessions.Load(id)
	if !ok {
		return nil
	}
	return v.(*Session)
}

// take does what a line of the node's table says. What does not fit is left out:
// a newer node may say more.
func (h *hold) take(l line) {
	p := h.peer
	far := p.mesh.cfg.Far
	switch {
	case l.Op == opSession && l.Agent != nil && len(l.Agent.Session) > 0 && len(l.Agent.Session) <= maxID:
		if h.session(l.Agent.Session) != nil {
			return
		}
		s := newSession(p, h.link, *l.Agent)
		s.Before = !h.whole // which nothing else sets
		h.sessions.Store(l.Agent.Session, s)
		far.SessionUp(s)
	case l.Op == opGone:
		if s := h.session(l.Session); s != nil {
			s.end(ErrNoSession)
			h.sessions.Delete(l.Session)
			far.SessionDown(s)
		}
	case l.Op == opTunnel && l.Tunnel != nil:
		if s := h.session(l.Tunnel.Session); s != nil {
			far.TunnelUp(s, l.told())
		}
	case l.Op == opWithdrawn:
		if s := h.session(l.Session); s != nil {
			far.TunnelDown(s, l.Key)
		}
	case l.Op == opChanged && len(l.Change) > 0:
		if age := time.Duration(l.Age) * time.Millisecond; age >= 0 && age < recentTime {
			p.mesh.table.heard(l.Change, age)
		}
		far.Changed(l.Change)
	case l.Op == opStore:
		p.mu.Lock()
		h.away = l.Away
		p.mu.Unlock()
	case l.Op == opWhole, l.Op == opDrain:
		p.mu.Lock()
		if l.Op == opWhole && !h.whole {
			h.whole = true
			close(h.told)
		}
		h.draining = h.draining || l.Op == opDrain
		p.mu.Unlock()
		p.mesh.log.Info("node tells", "node", p.id, "what", l.Op)
		far.NodeChanged(p.id)
	}
}

// receive hands on what agents on the node send to UDP visitors here.
func (h *hold) receive(ctx context.Context) {
	_ = link.ServeDatagrams(ctx, h.link, func(list [][]byte) { // it ends with the session
		for _, b := range list {
			id, rest, err := cutSession(b)
			if err != nil {
				continue
			}
			if far := h.session(string(id)); far != nil {
				h.peer.mesh.cfg.Far.Datagram(far, rest)
			}
		}
	})
}

// tell brings access events to the node, in turns.
func (h *hold) tell(ctx context.Context, client *http.Client) {
	p := h.peer
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
			if s := h.session(id); s != nil {
				s.mute.Store(true)
			}
		}
		if err != nil && ctx.Err() == nil {
			p.mesh.log.Debug("access events did not reach the agent's node", "node", p.id, "count", len(list), "error", err)
		}
	}
}
