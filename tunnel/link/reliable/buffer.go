package reliable

import "sync"

// blockSize is the unit of stream memory. An idle stream holds no block.
const blockSize = 16 << 10

type block [blockSize]byte

var blocks = sync.Pool{New: func() any { return new(block) }}

// copyBlocks is how many blocks one Read or Write copies without releasing the lock.
const copyBlocks = 4

// buffer holds a range of a stream's bytes in blocks aligned to the stream's offsets. Bytes that
// were never written are undefined.
type buffer struct {
	first  uint64 // index of blocks[0]: its offset by blockSize
	blocks []*block
}

// ensure makes room for bytes up to hi, starting at base if the buffer is empty.
func (b *buffer) ensure(base, hi uint64) {
	if len(b.blocks) == 0 {
		b.first = base / blockSize
	}
	for last := (hi - 1) / blockSize; b.first+uint64(len(b.blocks)) <= last; {
		b.blocks = append(b.blocks, nil)
	}
}

// slice returns the bytes from off to the end of its block, or to hi.
func (b *buffer) slice(off, hi uint64) []byte {
	i := off/blockSize - b.first
	if b.blocks[i] == nil {
		b.blocks[i] = blocks.Get().(*block)
	}
	end := min(hi, (off/blockSize+1)*blockSize)
	in := off % blockSize
	return b.blocks[i][in : in+end-off]
}

// write copies data to off.
func (b *buffer) write(base, off uint64, data []byte) {
	hi := off + uint64(len(data))
	b.ensure(base, hi)
	for off < hi {
		n := copy(b.slice(off, hi), data)
		data = data[n:]
		off += uint64(n)
	}
}

// read fills to with the bytes from off.
func (b *buffer) read(off uint64, to []byte) {
	for hi := off + uint64(len(to)); off < hi; {
		n := copy(to, b.slice(off, hi))
		to = to[n:]
		off += uint64(n)
	}
}

// release frees the blocks that are entirely below off.
func (b *buffer) release(off uint64) {
	n := 0
	for n < len(b.blocks) && (b.first+uint64(n)+1)*blockSize <= off {
		if b.blocks[n] != nil {
			blocks.Put(b.blocks[n])
		}
		n++
	}
	if n > 0 {
		m := copy(b.blocks, b.blocks[n:])
		clear(b.blocks[m:])
		b.blocks = b.blocks[:m]
		b.first += uint64(n)
	}
}

// reset frees all blocks.
func (b *buffer) reset() {
	for _, p := range b.blocks {
		if p != nil {
			blocks.Put(p)
		}
	}
	clear(b.blocks)
	b.blocks = b.blocks[:0]
	if cap(b.blocks) > 64 {
		b.blocks = nil
	}
}
