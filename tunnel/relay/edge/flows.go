package edge

import (
	"context"
	"sync"
	"sync/atomic"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// agentFlow is where a session's datagrams of one number go: a visitor here, or
// one on another node.
type agentFlow interface {
	endpoint() uint32
	take(payloads [][]byte) // valid until it returns; it may change the list
	over()                  // the agent has ended it
}

// flowTable finds the flows of a session by number.
type flowTable struct {
	mu    sync.RWMutex
	next  uint32
	flows map[uint32]agentFlow
}

// add gives f a number that no other flow has, which numbered is told before
// anybody finds f by it.
func (t *flowTable) add(f agentFlow, numbered *uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for taken := true; taken; _, taken = t.flows[t.next] {
		t.next++
	}
	*numbered = t.next
	if t.flows == nil {
		t.flows = make(map[uint32]agentFlow)
	}
	t.flows[t.next] = f
}

func (t *flowTable) get(n uint32) agentFlow {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.flows[n]
}

func (t *flowTable) remove(n uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.flows, n)
}

// Datagrams brings what an agent's session receives to its visitors, until the
// session or ctx ends.
func (a *Agent) Datagrams(ctx context.Context) error {
	answers := answers{agent: a, parts: new(wire.Reassembly)}
	return link.ServeDatagrams(ctx, a.Session, answers.bring)
}

// Datagram brings one message of an agent on another node to its visitor.
func (a *Agent) Datagram(b []byte) {
	a.reading.Lock()
	defer a.reading.Unlock()
	answers := answers{agent: a, parts: &a.parts}
	answers.bring([][]byte{b})
}

// answers brings an agent's messages to its visitors: those of one flow that
// follow each other go together.
type answers struct {
	agent *Agent
	parts *wire.Reassembly // of payloads that came in fragments

	flow   agentFlow // of list
	number uint32    // the flow's
	list   [][]byte
}

func (w *answers) bring(messages [][]byte) {
	for _, b := range messages {
		d, err := wire.ParseFlow(b)
		if err != nil {
			continue
		}
		f := w.flow
		if f == nil || w.number != d.Number {
			w.flush()
			f = w.agent.flows.get(d.Number)
		}
		if f == nil || f.endpoint() != d.Endpoint {
			continue
		}
		w.take(f, d)
	}
	w.flush()
}

func (w *answers) take(f agentFlow, d wire.Flow) {
	payload := d.Payload
	switch d.Kind {
	case wire.FlowClose:
		w.flush()
		f.over()
		return
	case wire.FlowWithheld: // what is no agent's to say
		return
	case wire.FlowFragment:
		payload = w.parts.Add(d)
	}
	if payload != nil {
		w.flow, w.number, w.list = f, d.Number, append(w.list, payload)
	}
}

// flush gives the flow what has gathered for it.
func (w *answers) flush() {
	if w.flow != nil {
		w.flow.take(w.list)
	}
	clear(w.list)
	w.flow, w.list = nil, w.list[:0]
}

// Relayed is a flow of a visitor on another node, on the way to an agent here.
type Relayed struct {
	agent  *Agent
	number uint32
	to     uint32 // the endpoint's number
	answer func(payload []byte)
	ended  func()

	packet atomic.Uint32
	mu     sync.Mutex
	buf    []byte
}

// Relay begins a flow. answer is told of every packet of the origin's, and over
// of the flow's end by the agent; neither may wait.
func (a *Agent) Relay(endpoint uint32, answer func(payload []byte), over func()) *Relayed {
	r := &Relayed{agent: a, to: endpoint, answer: answer, ended: over}
	a.flows.add(r, &r.number)
	return r
}

func (r *Relayed) endpoint() uint32 { return r.to }
func (r *Relayed) take(payloads [][]byte) {
	for _, payload := range payloads {
		r.answer(payload)
	}
}

func (r *Relayed) over() {
	r.agent.flows.remove(r.number)
	r.ended()
}

// Send sends a visitor's packet to the agent.
func (r *Relayed) Send(payload []byte) {
	out := wire.Flow{Endpoint: r.to, Number: r.number, Packet: uint16(r.packet.Add(1)), Payload: payload}
	s := r.agent.Session
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf, _ = wire.SplitFlow(r.buf, out, s.MaxDatagram(), s.SendDatagram) // a lost packet is UDP's own
}

// Withheld tells the agent that an answer was not passed on.
func (r *Relayed) Withheld() {
	_ = r.agent.Session.SendDatagram(wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowWithheld, Endpoint: r.to, Number: r.number}))
}

// Close ends the flow and tells the agent.
func (r *Relayed) Close() {
	r.agent.flows.remove(r.number)
	_ = r.agent.Session.SendDatagram(wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowClose, Endpoint: r.to, Number: r.number}))
}
