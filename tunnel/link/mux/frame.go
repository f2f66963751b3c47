package mux

import (
	"encoding/binary"
	"sync"
)

// The frames of yamux, version 0: version, type, flags, stream and length, big-endian.
const (
	typeData   = 0 // length bytes follow
	typeWindow = 1 // length more bytes may be sent
	typePing   = 2 // length is what the answer repeats
	typeGoAway = 3 // length is a code

	flagSYN = 1
	flagACK = 2
	flagFIN = 4
	flagRST = 8

	headerSize = 12
)

func appendHeader(b []byte, kind uint8, flags uint16, id, length uint32) []byte {
	b = append(b, 0, kind)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = binary.BigEndian.AppendUint32(b, id)
	return binary.BigEndian.AppendUint32(b, length)
}

type header struct {
	version, kind uint8
	flags         uint16
	id, length    uint32
}

func parseHeader(b []byte) header {
	return header{
		version: b[0], kind: b[1],
		flags:  binary.BigEndian.Uint16(b[2:]),
		id:     binary.BigEndian.Uint32(b[4:]),
		length: binary.BigEndian.Uint32(b[8:]),
	}
}

// chunkSize is a TLS record's plaintext, which is what a read of the connection gives.
const chunkSize = 16 << 10

// chunkPool has buffers of what streams received; batchPool those of what is
// about to be written; datagramPool those of datagrams. An idle session holds none.
var (
	chunkPool = sync.Pool{New: func() any { return new([chunkSize]byte) }}
	batchPool = sync.Pool{New: func() any { b := make([]byte, 0, maxBatch+maxFrame); return &b }}
)

func getChunk() []byte  { return chunkPool.Get().(*[chunkSize]byte)[:0] }
func putChunk(b []byte) { chunkPool.Put((*[chunkSize]byte)(b[:chunkSize])) }

func getBatch() []byte { return (*batchPool.Get().(*[]byte))[:0] }
func putBatch(b []byte) {
	if cap(b) >= maxBatch && cap(b) <= 4*maxBatch {
		b = b[:0]
		batchPool.Put(&b)
	}
}
