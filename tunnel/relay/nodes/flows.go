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
	maxFlows  = 1 << 16 // of one session between nodes, as far as no client has less than its part
	flowSweep = 30 * time.Second
	// flowIdle is above what edges keep a silent flow for: they end theirs, and
	// this only clears away what was not told.
	flowIdle = 10 * time.Minute
)

// flowKey is a flow as the visitor's node calls it.
type flowKey struct {
	session string
	number  uint32
}

// farFlow is a flow of a visitor on another node.
type farFlow struct {
	flow   Flow
	client string        // whose agent it is with
	packet atomic.Uint32 // of the origin's, counted
	used   atomic.Int64  // when a packet last passed, by monotime.Now
}

// flowSet are the flows that came by one session between nodes.
type flowSet struct {
	mesh *Mesh
	link link.Session
	past wire.Past[flowKey] // of who receives
	most int

	shares shares.Shares

	mu    sync.Mutex
	flows map[flowKey]*farFlow
	parts map[string]*wire.Reassembly // by session; those that had a fragment
}

// serveFlows carries UDP visitors of another node to agents here, until the
// session ends.
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
	_ = link.ServeDatagrams(ctx, s, func(list [][]byte) { // it ends with the session
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
		_, _ = wire.SplitFlow(nil, out, maxDatagram, send) // a lost packet is UDP's own
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

// forget takes a flow out, and returns it if there is one; fs.mu is held.
func (fs *flowSet) forget(key flowKey) *farFlow {
	f := fs.flows[key]
	if f != nil {
		delete(fs.flows, key)
		fs.shares.Give(f.client)
	}
	return f
}

func (fs *flowSet) send(session string, d []byte) {
	_ = fs.link.SendDatagram(append(appendSession(make([]byte, 0, 1+maxID+len(d)), session), d...)) // a lost packet is UDP's own
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

// dropParts forgets the fragments of agents' sessions that have no flow: most
// have ended.
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
