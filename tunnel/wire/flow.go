package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// FlowKind tells what a datagram of a UDP visitor is.
type FlowKind byte

// The kinds of flow datagram.
const (
	FlowWhole    FlowKind = 1 // one UDP payload
	FlowFragment FlowKind = 2 // part of a UDP payload that is larger than the session's datagrams
	FlowClose    FlowKind = 3 // the flow is over; no payload
	FlowWithheld FlowKind = 4 // the relay dropped an answer because the visitor's address may be forged; no payload
	FlowFrom     FlowKind = 5 // from the relay, before a flow's first packet: who the visitor is, as a From
)

// Sizes of a flow datagram's header, and limits.
const (
	FlowHeader     = 1 + 4 + 4
	FragmentHeader = FlowHeader + 4
	MaxUDPPayload  = 65507 // the largest payload of a UDP datagram over IPv4
	maxFragments   = 128
	maxFrom        = 128
)

// ErrFlow is matched by every error about a flow datagram.
var ErrFlow = errors.New("malformed flow datagram")

// Flow is one datagram of a UDP visitor, in either direction: kind (1 byte), endpoint
// (uint32), flow (uint32), for a fragment also packet (uint16), index and count (1 byte each),
// then the payload. All numbers are big endian. The relay numbers the flows; a number is not
// reused within a session.
type Flow struct {
	Kind     FlowKind
	Endpoint uint32 // the Grant's Number
	Number   uint32 // one visitor's address and port
	Packet   uint16 // of a fragment: identifies the packet among those of this flow and sender
	Index    uint8  // of a fragment: 0 to Count-1
	Count    uint8  // of a fragment: 2 to 128
	Payload  []byte
}

// AppendFlow appends f as bytes to b.
func AppendFlow(b []byte, f Flow) []byte {
	b = append(b, byte(f.Kind))
	b = binary.BigEndian.AppendUint32(b, f.Endpoint)
	b = binary.BigEndian.AppendUint32(b, f.Number)
	if f.Kind == FlowFragment {
		b = binary.BigEndian.AppendUint16(b, f.Packet)
		b = append(b, f.Index, f.Count)
	}
	return append(b, f.Payload...)
}

// ParseFlow parses a datagram. The payload is a slice of b, not a copy.
func ParseFlow(b []byte) (Flow, error) {
	if len(b) < FlowHeader {
		return Flow{}, fmt.Errorf("%w: %d bytes", ErrFlow, len(b))
	}
	f := Flow{
		Kind:     FlowKind(b[0]),
		Endpoint: binary.BigEndian.Uint32(b[1:]),
		Number:   binary.BigEndian.Uint32(b[5:]),
		Payload:  b[FlowHeader:],
	}
	switch f.Kind {
	case FlowWhole:
	case FlowFragment:
		if len(b) <= FragmentHeader {
			return Flow{}, fmt.Errorf("%w: a fragment of %d bytes", ErrFlow, len(b))
		}
		f.Packet, f.Index, f.Count = binary.BigEndian.Uint16(b[9:]), b[11], b[12]
		f.Payload = b[FragmentHeader:]
		if f.Count < 2 || f.Count > maxFragments || f.Index >= f.Count {
			return Flow{}, fmt.Errorf("%w: fragment %d of %d", ErrFlow, f.Index, f.Count)
		}
	case FlowClose, FlowWithheld:
		if len(f.Payload) != 0 {
			return Flow{}, fmt.Errorf("%w: kind %d with payload", ErrFlow, f.Kind)
		}
	case FlowFrom:
		if len(f.Payload) > maxFrom {
			return Flow{}, fmt.Errorf("%w: %d bytes of a visitor", ErrFlow, len(f.Payload))
		}
	default:
		return Flow{}, fmt.Errorf("%w: kind %d is not known", ErrFlow, f.Kind)
	}
	if len(f.Payload) > MaxUDPPayload {
		return Flow{}, fmt.Errorf("%w: a payload of %d bytes", ErrFlow, len(f.Payload))
	}
	return f, nil
}

// From identifies the visitor of a flow: the visitor's address and, for a private tunnel, a
// space and the name of the visiting client.
type From struct {
	Visitor netip.AddrPort
	Client  string // empty: none
}

// Datagram returns the FlowFrom datagram for a flow.
func (f From) Datagram(endpoint, number uint32) []byte {
	text := f.Visitor.String()
	if f.Client != "" {
		text += " " + f.Client
	}
	return AppendFlow(nil, Flow{Kind: FlowFrom, Endpoint: endpoint, Number: number, Payload: []byte(text)})
}

// ParseFrom parses the payload of a FlowFrom.
func ParseFrom(b []byte) (From, error) {
	addr, client, named := strings.Cut(string(b), " ")
	visitor, err := netip.ParseAddrPort(addr)
	if err != nil || len(b) > maxFrom || named && !clientName.MatchString(client) {
		return From{}, fmt.Errorf("%w: %q is no visitor", ErrFlow, b)
	}
	return From{visitor, client}, nil
}

// SplitFlow calls send with f's payload as one datagram, or as fragments if it does not fit
// into limit bytes. SplitFlow sets f.Kind, Index and Count; the caller increments f.Packet.
// buf is a scratch buffer that grows as needed and is returned for the next call. SplitFlow
// stops at the first error of send.
func SplitFlow(buf []byte, f Flow, limit int, send func([]byte) error) ([]byte, error) {
	if len(f.Payload)+FlowHeader <= limit {
		f.Kind = FlowWhole
		buf = AppendFlow(buf[:0], f)
		return buf, send(buf)
	}
	room := limit - FragmentHeader
	if room < 1 {
		return buf, fmt.Errorf("%w: no room in datagrams of %d bytes", ErrFlow, limit)
	}
	payload := f.Payload
	count := (len(payload) + room - 1) / room
	if len(payload) > MaxUDPPayload || count > maxFragments {
		return buf, fmt.Errorf("%w: %d bytes are too many for datagrams of %d", ErrFlow, len(payload), limit)
	}
	count = max(count, 2)
	share := (len(payload) + count - 1) / count
	f.Kind, f.Count = FlowFragment, uint8(count)
	for i := range count {
		f.Index, f.Payload = uint8(i), payload[i*share:min((i+1)*share, len(payload))]
		buf = AppendFlow(buf[:0], f)
		if err := send(buf); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// Limits of a Reassembly.
const (
	maxPartialPackets = 64
	maxPartialBytes   = 1 << 20
	// maxPartialAge is how many datagrams may arrive before a packet must be complete. It is
	// far fewer than it takes for packet numbers to wrap around.
	maxPartialAge = 1 << 14
)

// Reassembly puts fragments back together. It holds at most 64 incomplete packets and 1 MiB of
// fragments; the oldest packets make room for new ones, so a lost fragment costs no more than
// its own packet. It is not safe for concurrent use. The zero value is ready to use.
type Reassembly struct {
	parts map[partialKey]*partial
	order []partialKey // oldest first
	bytes int
	added uint64 // datagrams so far
}

type partialKey struct {
	endpoint, number uint32
	packet           uint16
}

type partial struct {
	pieces [][]byte
	have   int
	size   int
	begun  uint64 // value of Reassembly.added at the first fragment
}

// Add takes a datagram and returns a complete payload, or nil if there is none yet. The
// payload of a whole datagram is returned as it is; a payload put together from fragments
// belongs to the caller.
func (r *Reassembly) Add(f Flow) []byte {
	r.added++
	if f.Kind == FlowWhole {
		return f.Payload
	}
	if f.Kind != FlowFragment {
		return nil
	}
	key := partialKey{f.Endpoint, f.Number, f.Packet}
	p := r.parts[key]
	if p != nil && (len(p.pieces) != int(f.Count) || r.added-p.begun > maxPartialAge) { // the number has wrapped around
		r.drop(key)
		p = nil
	}
	if p == nil {
		if r.parts == nil {
			r.parts = make(map[partialKey]*partial)
		}
		p = &partial{pieces: make([][]byte, f.Count), begun: r.added}
		r.parts[key] = p
		r.order = append(r.order, key)
	}
	if p.pieces[f.Index] != nil {
		return nil
	}
	if p.size+len(f.Payload) > MaxUDPPayload {
		r.drop(key)
		return nil
	}
	p.pieces[f.Index] = append([]byte(nil), f.Payload...)
	p.have++
	p.size += len(f.Payload)
	r.bytes += len(f.Payload)
	if p.have == len(p.pieces) {
		whole := make([]byte, 0, p.size)
		for _, piece := range p.pieces {
			whole = append(whole, piece...)
		}
		r.drop(key)
		return whole
	}
	for len(r.order) > maxPartialPackets || r.bytes > maxPartialBytes {
		r.drop(r.order[0])
	}
	return nil
}

func (r *Reassembly) drop(key partialKey) {
	p := r.parts[key]
	if p == nil {
		return
	}
	r.bytes -= p.size
	delete(r.parts, key)
	for i, k := range r.order {
		if k == key {
			r.order = append(r.order[:i], r.order[i+1:]...)
			break
		}
	}
}
