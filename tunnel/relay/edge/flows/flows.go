// Package flows multiplexes UDP flows over a session's datagrams: it numbers the flows,
// reassembles fragments, and delivers what an agent sends to the flow that it is for. Its
// callers receive the visitors' packets and decide what a flow may carry.
package flows

import (
	"context"
	"sync"
	"sync/atomic"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Flow is where a session's datagrams of one number go: a visitor here, or
// one on another node.
type Flow interface {
	Endpoint() uint32       // its number within the session
	Take(payloads [][]byte) // valid until it returns; it may change the list
	Over()                  // the agent has ended it
}

// Table finds the flows of a session by number. The zero value has none.
type Table struct {
	mu    sync.RWMutex
	next  uint32
	flows map[uint32]Flow

	reading sync.Mutex // held by Bring, and guards parts
	parts   wire.Reassembly
}

// Add gives f a number that no other flow has, which numbered is told before
// anybody finds f by it.
func (t *Table) Add(f Flow, numbered *uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for taken := true; taken; _, taken = t.flows[t.next] {
		t.next++
	}
	*numbered = t.next
	if t.flows == nil {
		t.flows = make(map[uint32]Flow)
	}
	t.flows[t.next] = f
}

func (t *Table) get(n uint32) Flow {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.flows[n]
}

// Remove forgets a flow.
func (t *Table) Remove(n uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.flows, n)
}

// Serve brings what the session receives to the flows, until it or ctx ends.
func (t *Table) Serve(ctx context.Context, s link.Session) error {
	answers := answers{of: t, parts: new(wire.Reassembly)}
	return link.ServeDatagrams(ctx, s, answers.bring)
}

// Bring brings one message that was received elsewhere to its flow.
func (t *Table) Bring(b []byte) {
	t.reading.Lock()
	defer t.reading.Unlock()
	answers := answers{of: t, parts: &t.parts}
	answers.bring([][]byte{b})
}

// answers brings an agent's messages to flows: those of one that follow each other
// go together.
type answers struct {
	of    *Table
	parts *wire.Reassembly // of payloads that came in fragments

	flow   Flow   // of list
	number uint32 // the flow's
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
			f = w.of.get(d.Number)
		}
		if f == nil || f.Endpoint() != d.Endpoint {
			continue
		}
		w.take(f, d)
	}
	w.flush()
}

func (w *answers) take(f Flow, d wire.Flow) {
	payload := d.Payload
	switch d.Kind {
	case wire.FlowClose:
		w.flush()
		f.Over()
		return
	case wire.FlowWithheld, wire.FlowFrom: // what is no agent's to say
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
		w.flow.Take(w.list)
	}
	clear(w.list)
	w.flow, w.list = nil, w.list[:0]
}

// Relayed is a flow of a visitor on another node, on the way to an agent here.
type Relayed struct {
	table   *Table
	session link.Session
	number  uint32
	to      uint32 // the endpoint's number
	answer  func(payload []byte)
	ended   func()

	packet atomic.Uint32
	mu     sync.Mutex
	buf    []byte
}

// Relay begins a flow of the session. answer is told of every packet of the origin's,
// and over of the flow's end by the agent; neither may wait.
func (t *Table) Relay(s link.Session, endpoint uint32, answer func(payload []byte), over func()) *Relayed {
	r := &Relayed{table: t, session: s, to: endpoint, answer: answer, ended: over}
	t.Add(r, &r.number)
	return r
}

// Endpoint is the number of the endpoint within the session.
func (r *Relayed) Endpoint() uint32 { return r.to }

// Take passes on what the origin has sent.
func (r *Relayed) Take(payloads [][]byte) {
	for _, payload := range payloads {
		r.answer(payload)
	}
}

// Over ends the flow, which the agent has ended.
func (r *Relayed) Over() {
	r.table.Remove(r.number)
	r.ended()
}

// Send sends a visitor's packet to the agent.
func (r *Relayed) Send(payload []byte) {
	out := wire.Flow{Endpoint: r.to, Number: r.number, Packet: uint16(r.packet.Add(1)), Payload: payload}
	s := r.session
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf, _ = wire.SplitFlow(r.buf, out, s.MaxDatagram(), s.SendDatagram) // a lost packet is UDP's own
}

// From tells the agent whose the flow is.
func (r *Relayed) From(who wire.From) { _ = r.session.SendDatagram(who.Datagram(r.to, r.number)) }

// Withheld tells the agent that an answer was not passed on.
func (r *Relayed) Withheld() {
	_ = r.session.SendDatagram(wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowWithheld, Endpoint: r.to, Number: r.number}))
}

// Close ends the flow and tells the agent.
func (r *Relayed) Close() {
	r.table.Remove(r.number)
	_ = r.session.SendDatagram(wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowClose, Endpoint: r.to, Number: r.number}))
}
