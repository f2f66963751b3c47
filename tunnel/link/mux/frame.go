package mux

import (
	"encoding/binary"
	"sync"

	"adit/internal/lend"
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

// Received data is held in buffers of two sizes. A TLS record is at most chunkSize bytes, and the
// largest frame with its header is four of them.
const (
	chunkSize = 16 << 10
	bulkSize  = 64 << 10
)

// chunkPool and bulkPool hold memory for data that streams received, batchPool for data about to be
// written, and datagramPool for datagrams. An idle session holds none.
var (
	chunkPool = sync.Pool{New: func() any { return new([chunkSize]byte) }}
	bulkPool  lend.Pool[[bulkSize]byte]
	batchPool = lend.Pool[[]byte]{New: func() *[]byte { b := make([]byte, 0, maxBatch+bulkSize); return &b }}
)

// takeMemory returns a buffer of chunkSize or bulkSize bytes, to be returned with giveMemory.
func takeMemory(size int) []byte {
	if size == bulkSize {
		return bulkPool.Get()[:]
	}
	return chunkPool.Get().(*[chunkSize]byte)[:]
}

func giveMemory(mem []byte) {
	if len(mem) == bulkSize {
		bulkPool.Put((*[bulkSize]byte)(mem))
		return
	}
	chunkPool.Put((*[chunkSize]byte)(mem))
}

// chunk is a part of what a stream has received, mem[from:to], in its own memory.
type chunk struct {
	mem      []byte
	from, to int
}

// read moves bytes into b and returns how many.
func (c *chunk) read(b []byte) int {
	n := copy(b, c.mem[c.from:c.to])
	c.from += n
	return n
}

// append copies bytes of b behind those already in c, and returns how many fitted.
func (c *chunk) append(b []byte) int {
	n := copy(c.mem[c.to:], b)
	c.to += n
	return n
}

func getBatch() []byte { return (*batchPool.Get())[:0] }
func putBatch(b []byte) {
	if cap(b) >= maxBatch && cap(b) <= 4*maxBatch {
		b = b[:0]
		batchPool.Put(&b)
	}
}
