package record

import "encoding/binary"

// Content types (RFC 5246 §6.2.1, RFC 9146 §4).
const (
	typeCCS         = 20
	typeAlert       = 21
	typeHandshake   = 22
	typeApplication = 23
	typeCID         = 25
)

// headerSize is the size of a record's header without a Connection ID.
const headerSize = 13

// Record numbers in epoch 1. The handshake counts from zero, our path messages from controlBase,
// and application data from base; the farewell has the last number below that. The ranges never
// overlap, so no nonce is used twice.
const (
	epoch1         = uint64(1) << 48
	maxNumber      = epoch1 - 1
	base           = uint64(1) << 40
	controlBase    = uint64(1) << 39
	farewellNumber = base - 1
)

// rawRecord is one record as received. seq has the epoch in its upper 16 bits.
type rawRecord struct {
	typ   byte
	seq   uint64
	cid   []byte
	body  []byte
	whole []byte
}

func (r rawRecord) epoch() uint16  { return uint16(r.seq >> 48) }
func (r rawRecord) number() uint64 { return r.seq & maxNumber }

// parse splits the first record from a datagram; cidLen is the length of the Connection IDs that
// the receiver assigns. Anything that is not a complete record of DTLS 1.2 is refused, along with
// the rest of its datagram.
func parse(b []byte, cidLen int) (r rawRecord, rest []byte, ok bool) {
	if len(b) < headerSize {
		return r, nil, false
	}
	at := 11
	switch b[0] {
	case typeCCS, typeAlert, typeHandshake, typeApplication:
	case typeCID:
		if cidLen == 0 {
			return r, nil, false
		}
		at += cidLen
	default:
		return r, nil, false
	}
	// A first ClientHello may carry the version of DTLS 1.0 here (RFC 6347 §4.2.1).
	if b[1] != 0xfe || (b[2] != 0xfd && b[2] != 0xff) || len(b) < at+2 {
		return r, nil, false
	}
	end := at + 2 + int(binary.BigEndian.Uint16(b[at:]))
	if end > len(b) {
		return r, nil, false
	}
	return rawRecord{
		typ: b[0], seq: binary.BigEndian.Uint64(b[3:]),
		cid: b[11:at], body: b[at+2 : end], whole: b[:end],
	}, b[end:], true
}
