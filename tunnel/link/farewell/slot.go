package farewell

import (
	"encoding/binary"
	"hash/crc32"
	"net/netip"
)

// A slot is 128 bytes: a checksum of the rest (CRC-32C), the record's length, the size of the
// address to send it to (0, 4 or 16 bytes), its port, that address, the local address (zeros:
// none), the session's ID, and the record. IPv4 addresses are mapped to IPv6. An empty slot is all
// zeros.
const (
	slotSize = 128
	// MaxRecord is the largest size of a record, in bytes.
	MaxRecord = slotSize - atRecord

	atLength = 4
	atFamily = 5
	atPort   = 6
	atTo     = 8
	atFrom   = 24
	atID     = 40
	atRecord = 48
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encode(id ID, w Word) (s [slotSize]byte) {
	s[atLength] = byte(len(w.Record))
	if to := w.To.Addr(); to.IsValid() && to.Zone() == "" { // a zone's name may be another's later
		s[atFamily] = byte(to.Unmap().BitLen() / 8)
		binary.BigEndian.PutUint16(s[atPort:], w.To.Port())
		put(s[atTo:], to)
	}
	if w.From.IsValid() {
		put(s[atFrom:], w.From)
	}
	copy(s[atID:], id[:])
	copy(s[atRecord:], w.Record)
	binary.BigEndian.PutUint32(s[:], checksum(s))
	return s
}

func put(into []byte, a netip.Addr) {
	b := a.As16()
	copy(into, b[:])
}

func checksum(s [slotSize]byte) uint32 { return crc32.Checksum(s[atLength:], castagnoli) }

// decode returns the contents of a slot; ok is false if it is empty or damaged.
func decode(s [slotSize]byte) (id ID, w Word, ok bool) {
	length := int(s[atLength])
	if length == 0 || length > MaxRecord || binary.BigEndian.Uint32(s[:]) != checksum(s) {
		return id, w, false
	}
	to, from := netip.AddrFrom16([16]byte(s[atTo:])), netip.AddrFrom16([16]byte(s[atFrom:]))
	if s[atFamily] > 0 {
		w.To = netip.AddrPortFrom(to.Unmap(), binary.BigEndian.Uint16(s[atPort:]))
	}
	if !from.IsUnspecified() {
		w.From = from.Unmap()
	}
	w.Record = append([]byte(nil), s[atRecord:atRecord+length]...)
	return ID(s[atID:]), w, true
}
