package reliable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// Frame types, as in RFC 9000 §19 and RFC 9221 §4.
const (
	framePadding           = 0x00
	framePing              = 0x01
	frameAck               = 0x02
	frameResetStream       = 0x04
	frameStopSending       = 0x05
	frameStream            = 0x08 // to 0x0f: bits for offset, length and the end
	frameMaxData           = 0x10
	frameMaxStreamData     = 0x11
	frameMaxStreams        = 0x12
	frameDataBlocked       = 0x14
	frameStreamDataBlocked = 0x15
	frameStreamsBlocked    = 0x16
	frameClose             = 0x1d
	frameKeepAlive         = 0x2a // not QUIC's
	frameDatagram          = 0x30 // to 0x31: bit for the length

	streamFin    = 0x01
	streamLength = 0x02
	streamOffset = 0x04
)

const (
	maxVarint = 1<<62 - 1
	// maxAckRanges bounds the ranges of one ACK frame.
	maxAckRanges = 256
	// maxReason limits the reason of a close, in bytes.
	maxReason = 512
	// ackDelayUnit is the unit of an ACK frame's delay.
	ackDelayUnit = 8 * time.Microsecond
)

var errFrame = errors.New("malformed frame")

// span is a range of numbers from lo to hi. hi is included for packets and excluded for bytes.
type span struct{ lo, hi uint64 }

// frame is one decoded frame. Which fields are meaningful depends on Type.
type frame struct {
	Type   byte
	Stream uint64
	Offset uint64 // STREAM: of Data; RESET_STREAM: final size
	Value  uint64 // limits; RESET_STREAM, STOP_SENDING, CLOSE: the code
	Fin    bool
	Data   []byte        // into the packet
	Delay  time.Duration // ACK
	Ranges []span        // ACK: descending, disjoint, ends included; reused
}

func varintLen(v uint64) int {
	switch {
	case v < 1<<6:
		return 1
	case v < 1<<14:
		return 2
	case v < 1<<30:
		return 4
	}
	return 8
}

func appendVarint(b []byte, v uint64) []byte {
	switch {
	case v < 1<<6:
		return append(b, byte(v))
	case v < 1<<14:
		return append(b, byte(v>>8)|0x40, byte(v))
	case v < 1<<30:
		return binary.BigEndian.AppendUint32(b, uint32(v)|0x80000000)
	}
	return binary.BigEndian.AppendUint64(b, v|0xc000000000000000)
}

// varint decodes a number; n is 0 if b is too short.
func varint(b []byte) (v uint64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	n = 1 << (b[0] >> 6)
	if len(b) < n {
		return 0, 0
	}
	v = uint64(b[0] & 0x3f)
	for _, c := range b[1:n] {
		v = v<<8 | uint64(c)
	}
	return v, n
}

// decoder reads numbers one after another and remembers whether one was missing.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) varint() uint64 {
	v, n := varint(d.b)
	if n == 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// decodeFrame decodes the frame at the beginning of b into f, and returns its length. A run of
// PADDING is one frame.
func decodeFrame(b []byte, f *frame) (int, error) {
	if len(b) == 0 {
		return 0, fmt.Errorf("%w: empty", errFrame)
	}
	d := decoder{b: b[1:]}
	*f = frame{Type: b[0], Ranges: f.Ranges[:0]}
	switch t := b[0]; {
	case t == framePadding:
		for len(d.b) > 0 && d.b[0] == 0 {
			d.b = d.b[1:]
		}
	case t == framePing:
	case t == frameAck:
		decodeAck(&d, f)
	case t == frameResetStream:
		f.Stream, f.Value, f.Offset = d.varint(), d.varint(), d.varint()
	case t == frameStopSending:
		f.Stream, f.Value = d.varint(), d.varint()
	case t&^7 == frameStream:
		f.Type, f.Fin = frameStream, t&streamFin != 0
		f.Stream = d.varint()
		if t&streamOffset != 0 {
			f.Offset = d.varint()
		}
		n := uint64(len(d.b))
		if t&streamLength != 0 {
			n = d.varint()
		}
		f.Data = d.bytes(n)
		if f.Offset+n > maxVarint {
			d.bad = true
		}
	case t == frameMaxData, t == frameMaxStreams, t == frameDataBlocked, t == frameStreamsBlocked, t == frameKeepAlive:
		f.Value = d.varint()
	case t == frameMaxStreamData, t == frameStreamDataBlocked:
		f.Stream, f.Value = d.varint(), d.varint()
	case t == frameClose:
		f.Value = d.varint()
		n := d.varint()
		if n > maxReason {
			d.bad = true
		}
		f.Data = d.bytes(min(n, maxReason))
	case t&^1 == frameDatagram:
		f.Type = frameDatagram
		n := uint64(len(d.b))
		if t&1 != 0 {
			n = d.varint()
		}
		f.Data = d.bytes(n)
	default:
		return 0, fmt.Errorf("%w: unknown type 0x%02x", errFrame, t)
	}
	if d.bad {
		return 0, fmt.Errorf("%w: type 0x%02x", errFrame, b[0])
	}
	return len(b) - len(d.b), nil
}

// decodeAck decodes an ACK's body: RFC 9000 §19.3.
func decodeAck(d *decoder, f *frame) {
	largest, delay, more, first := d.varint(), d.varint(), d.varint(), d.varint()
	if d.bad || more >= maxAckRanges || first > largest {
		d.bad = true
		return
	}
	f.Delay = time.Duration(min(delay, math.MaxInt64/uint64(ackDelayUnit))) * ackDelayUnit
	lo := largest - first
	f.Ranges = append(f.Ranges, span{lo, largest})
	for range more {
		gap, n := d.varint(), d.varint()
		if d.bad || lo < gap+2 || lo-gap-2 < n {
			d.bad = true
			return
		}
		hi := lo - gap - 2
		lo = hi - n
		f.Ranges = append(f.Ranges, span{lo, hi})
	}
}

// appendAck appends an ACK with as many of ranges (descending, ends included) as fit in room bytes,
// or nothing if not even one does.
func appendAck(b []byte, ranges []span, delay time.Duration, room int) []byte {
	if len(ranges) == 0 {
		return b
	}
	largest, units := ranges[0].hi, uint64(max(0, delay)/ackDelayUnit)
	size := 1 + varintLen(largest) + varintLen(units) + 2 + varintLen(ranges[0].hi-ranges[0].lo)
	if size > room {
		return b
	}
	n := 1
	for ; n < len(ranges) && n < maxAckRanges; n++ {
		more := varintLen(ranges[n-1].lo-ranges[n].hi-2) + varintLen(ranges[n].hi-ranges[n].lo)
		if size+more > room {
			break
		}
		size += more
	}
	b = append(b, frameAck)
	b = appendVarint(b, largest)
	b = appendVarint(b, units)
	b = appendVarint(b, uint64(n-1))
	b = appendVarint(b, ranges[0].hi-ranges[0].lo)
	for i := 1; i < n; i++ {
		b = appendVarint(b, ranges[i-1].lo-ranges[i].hi-2)
		b = appendVarint(b, ranges[i].hi-ranges[i].lo)
	}
	return b
}

// streamHeader is the maximum overhead of a STREAM frame.
func streamHeader(id, offset uint64, room int) int {
	return 1 + varintLen(id) + varintLen(offset) + varintLen(uint64(room))
}

// appendStreamHeader appends the header for n bytes of stream data. It always contains the length,
// so that another frame may follow.
func appendStreamHeader(b []byte, id, offset uint64, n int, fin bool) []byte {
	t := byte(frameStream | streamLength | streamOffset)
	if fin {
		t |= streamFin
	}
	b = append(b, t)
	b = appendVarint(b, id)
	b = appendVarint(b, offset)
	return appendVarint(b, uint64(n))
}

// appendNumbers appends a frame that consists of a type and numbers.
func appendNumbers(b []byte, t byte, numbers ...uint64) []byte {
	b = append(b, t)
	for _, v := range numbers {
		b = appendVarint(b, v)
	}
	return b
}

func appendClose(b []byte, code uint64, reason string) []byte {
	reason = reason[:min(len(reason), maxReason)]
	b = appendNumbers(b, frameClose, code, uint64(len(reason)))
	return append(b, reason...)
}

func appendDatagram(b, data []byte) []byte {
	b = appendNumbers(b, frameDatagram|1, uint64(len(data)))
	return append(b, data...)
}
