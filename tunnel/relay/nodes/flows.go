package nodes

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/internal/shares"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

const (
	maxFlows  = 1 << 16 // of one session between nodes, unless a client has less than its share
	flowSweep = 30 * time.Second
	// flowIdle is longer than edges keep a silent flow. Edges end their own flows, so
	// this only cleans up flows whose end was not received.
	flowIdle = 10 * time.Minute
)

// flowKey identifies a flow in the terms of the visitor's node.
type flowKey struct {
	session string
	number  uint32
}

// farFlow is a flow of a visitor on another node.
type farFlow struct {
	flow   Flow
	client string        // the client whose agent it is with
	packet atomic.Uint32 // counts the origin's packets
	used   atomic.Int64  // when a packet last passed, by monotime.Now
}

// flowSet holds the flows that arrived over one session between nodes.
type flowSet struct {
	mesh *Mesh
	link link.Session
	past wire.Past[flowKey] // used by the receiver
	most int

	shares shares.Shares

	mu    sync.Mutex
	flows map[flowKey]*farFlow
	parts map[string]*wire.Reassembly // by session; only those that have received a fragment
}

// serveFlows carries UDP packets between visitors of another node and agents here, until
// the session ends.
func (m *Mesh) serveFlows(ctx context.Context, s link.Session) {
	fs := &flowSet{mesh: m, link: s, most: maxFlows, flows: make(map[flowKey]*farFlow), parts: make(map[string]*wire.Reassembly)}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { fs.sweep(ctx) })
	defer func() {
		cancel()
		wg.Wait()
		fs.end(func(*farFlow) bool { return true })
	}()
	_ = link.ServeDatagrams(ctx, s, func(list [][]byte) { // ends with the session
		for _, b := range list {
			id, rest, err := cutSession(b)
			if err != nil {
				continue
			}
			if d, err := wire.ParseFlow(rest); err == nil {
				fs.take(string(id), d)
			}
		}
	})
}

func (fs *flowSet) take(session string, d wire.Flow) {
	key := flowKey{session, d.Number}
	switch d.Kind {
	case wire.FlowClose:
		fs.past.Add(key)
		fs.mu.Lock()
		f := fs.forget(key)
		fs.mu.Unlock()
		if f != nil {
			f.flow.Close()
		}
		return
	case wire.FlowWithheld:
		fs.mu.Lock()
		f := fs.flows[key]
		fs.mu.Unlock()
		if f != nil {
			f.flow.Withheld()
		}
		return
	}
	payload := d.Payload
	var who wire.From
	switch d.Kind {
	case wire.FlowFrom:
		var err error
		if who, err = wire.ParseFrom(payload); err != nil {
			return
		}
	case wire.FlowFragment:
		fs.mu.Lock()
		parts := fs.parts[session]
		if parts == nil {
			parts = new(wire.Reassembly)
			fs.parts[session] = parts
		}
		fs.mu.Unlock()
		if payload = parts.Add(d); payload == nil {
			return
		}
	}
	fs.mu.Lock()
	f := fs.flows[key]
	fs.mu.Unlock()
	if f == nil {
		client := fs.mesh.table.client(session)
		if fs.past.Has(key) || !fs.shares.Take(client, fs.most) {
			return
		}
		if f = fs.begin(key, d.Endpoint, client); f == nil {
			fs.shares.Give(client)
			fs.send(session, wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowClose, Endpoint: d.Endpoint, Number: d.Number}))
			return
		}
	}
	f.used.Store(int64(monotime.Now()))
	if d.Kind == wire.FlowFrom {
		f.flow.From(who)
		return
	}
	f.flow.Send(payload)
}

func (fs *flowSet) begin(key flowKey, endpoint uint32, client string) *farFlow {
	f := &farFlow{client: client}
	send := func(b []byte) error {
		fs.send(key.session, b)
		return nil
	}
	answer := func(payload []byte) {
		f.used.Store(int64(monotime.Now()))
		out := wire.Flow{Endpoint: endpoint, Number: key.number, Packet: uint16(f.packet.Add(1)), Payload: payload}
		_, _ = wire.SplitFlow(nil, out, maxDatagram, send) // UDP tolerates a lost packet
	}
	over := func() {
		fs.mu.Lock()
		fs.forget(key)
		fs.mu.Unlock()
		fs.send(key.session, wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowClose, Endpoint: endpoint, Number: key.number}))
	}
	if f.flow = fs.mesh.cfg.Local.Flow(key.session, endpoint, answer, over); f.flow == nil {
		return nil
	}
	fs.mu.Lock()
	fs.flows[key] = f
	fs.mu.Unlock()
	return f
}

// forget removes a flow and returns it, if there is one. fs.mu must be held.
func (fs *flowSet) forget(key flowKey) *farFlow {
	f := fs.flows[key]
	if f != nil {
		delete(fs.flows, key)
		fs.shares.Give(f.client)
	}
	return f
}

func (fs *flowSet) send(session string, d []byte) {
	_ = fs.link.SendDatagram(append(appendSession(make([]byte, 0, 1+maxID+len(d)), session), d...)) // UDP tolerates a lost packet
}

func (fs *flowSet) sweep(ctx context.Context) {
	tick := time.NewTicker(flowSweep)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			before := int64(monotime.Now() - flowIdle)
			fs.end(func(f *farFlow) bool { return f.used.Load() < before })
			fs.dropParts()
		case <-ctx.Done():
			return
		}
	}
}

// dropParts drops the fragments of agents' sessions that have no flows: most of these
// sessions have ended.
func (fs *flowSet) dropParts() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	alive := make(map[string]bool)
	for key := range fs.flows {
		alive[key.session] = true
	}
	maps.DeleteFunc(fs.parts, func(session string, _ *wire.Reassembly) bool { return !alive[session] })
}

func (fs *flowSet) end(over func(*farFlow) bool) {
	var ended []*farFlow
	fs.mu.Lock()
	for key, f := range fs.flows {
		if over(f) {
			fs.forget(key)
			ended = append(ended, f)
		}
	}
	fs.mu.Unlock()
	for _, f := range ended {
		f.flow.Close()
	}
}
