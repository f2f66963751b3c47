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

// Flow receives a session's datagrams with one number. It belongs to a visitor here, or on
// another node.
type Flow interface {
	Endpoint() uint32       // the endpoint's number within the session
	Take(payloads [][]byte) // payloads is valid until Take returns, which may change the slice
	Over()                  // called when the agent has ended the flow
}

// Table finds the flows of a session by number. The zero value is empty.
type Table struct {
	mu    sync.RWMutex
	next  uint32
	flows map[uint32]Flow

	reading sync.Mutex // held by Bring; guards parts
	parts   wire.Reassembly
}

// Add gives f a number that no other flow has. It stores the number in numbered before f can
// be found by it.
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

// Remove removes a flow.
func (t *Table) Remove(n uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.flows, n)
}

// Serve delivers what the session receives to the flows, until the session or ctx ends.
func (t *Table) Serve(ctx context.Context, s link.Session) error {
	answers := answers{of: t, parts: new(wire.Reassembly)}
	return link.ServeDatagrams(ctx, s, answers.bring)
}

// Bring delivers one message that was received elsewhere.
func (t *Table) Bring(b []byte) {
	t.reading.Lock()
	defer t.reading.Unlock()
	answers := answers{of: t, parts: &t.parts}
	answers.bring([][]byte{b})
}

// answers delivers an agent's messages to flows, in batches of consecutive messages for the
// same flow.
type answers struct {
	of    *Table
	parts *wire.Reassembly // reassembles fragmented payloads

	flow   Flow   // that list is for
	number uint32 // number of flow
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
	case wire.FlowWithheld, wire.FlowFrom: // an agent must not send these
		return
	case wire.FlowFragment:
		payload = w.parts.Add(d)
	}
	if payload != nil {
		w.flow, w.number, w.list = f, d.Number, append(w.list, payload)
	}
}

// flush delivers the batch.
func (w *answers) flush() {
	if w.flow != nil {
		w.flow.Take(w.list)
	}
	clear(w.list)
	w.flow, w.list = nil, w.list[:0]
}

// Relayed is a flow from a visitor on another node to an agent on this one.
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

// Relay begins a flow on the session. answer is called for every packet from the origin, and
// over when the agent ends the flow; neither may block.
func (t *Table) Relay(s link.Session, endpoint uint32, answer func(payload []byte), over func()) *Relayed {
	r := &Relayed{table: t, session: s, to: endpoint, answer: answer, ended: over}
	t.Add(r, &r.number)
	return r
}

// Endpoint returns the number of the endpoint within the session.
func (r *Relayed) Endpoint() uint32 { return r.to }

// Take passes on what the origin has sent.
func (r *Relayed) Take(payloads [][]byte) {
	for _, payload := range payloads {
		r.answer(payload)
	}
}

// Over is called when the agent has ended the flow.
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
	r.buf, _ = wire.SplitFlow(r.buf, out, s.MaxDatagram(), s.SendDatagram) // UDP packets may be lost
}

// From tells the agent who the flow's visitor is.
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
