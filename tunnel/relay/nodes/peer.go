package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

type accessEvent struct {
	session string
	access  wire.Access
}

// peer is another node that this one keeps a session with.
type peer struct {
	mesh   *Mesh
	id     string
	kick   chan struct{} // tells run to dial immediately; room for one
	access chan accessEvent

	mu     sync.Mutex
	node   Node
	wanted bool
	cur    *hold // nil if there is no session
}

func newPeer(m *Mesh, n Node) *peer {
	return &peer{mesh: m, id: n.ID, node: n, wanted: true, kick: make(chan struct{}, 1), access: make(chan accessEvent, accessQueue)}
}

// know records the node's current entry.
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
	if p.cur == nil {
		return PeerState{}
	}
	return PeerState{Connected: p.cur.whole, Draining: p.cur.draining, StoreAway: p.cur.away, RTT: p.cur.link.Stats().RTT}
}

// run keeps a session with the node until ctx ends, or until the node is no longer listed
// and does not answer.
func (p *peer) run(ctx context.Context) {
	m := p.mesh
	pause := firstPause
	level := slog.LevelInfo // an unreachable node is news only once
	var fading sync.WaitGroup
	defer fading.Wait()
	for ctx.Err() == nil {
		begin := time.Now()
		h, err := p.hold(ctx)
		if err == nil {
			err = p.keep(ctx, h, &fading)
		}
		if ctx.Err() != nil {
			return
		}
		if h != nil {
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
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAccess)).Decode(&answer); err != nil && err != io.EOF { // older nodes send no body
		return answer, err
	}
	return answer, nil
}
