package inspect

import "sync"

// Bodies beyond smallBody are kept in blocks that are reused, so that a busy tunnel creates no
// garbage.
const (
	smallBody = 4 << 10
	blockSize = 16 << 10
)

type block [blockSize]byte

var blocks = sync.Pool{New: func() any { return new(block) }}

// store is the kept part of a body.
type store struct {
	small  []byte // all of it while it is small
	blocks []*block
	size   int
}

// cost returns how many more bytes of memory n more bytes of body take.
func (s *store) cost(n int) int {
	after := s.size + n
	if after <= smallBody {
		return n
	}
	need := (after+blockSize-1)/blockSize - len(s.blocks)
	return need*blockSize - len(s.small)
}

// add copies b to the end.
func (s *store) add(b []byte) {
	if s.size+len(b) <= smallBody {
		s.small = append(s.small, b...)
		s.size += len(b)
		return
	}
	if s.small != nil {
		first := s.small
		s.small, s.size = nil, 0
		s.fill(first)
	}
	s.fill(b)
}

func (s *store) fill(b []byte) {
	for len(b) > 0 {
		at := s.size % blockSize
		if at == 0 {
			s.blocks = append(s.blocks, blocks.Get().(*block))
		}
		n := copy(s.blocks[len(s.blocks)-1][at:], b)
		s.size += n
		b = b[n:]
	}
}

// bytes returns a copy.
func (s *store) bytes() []byte {
	if s.size == 0 {
		return nil
	}
	out := make([]byte, 0, s.size)
	out = append(out, s.small...)
	for _, b := range s.blocks {
		out = append(out, b[:min(blockSize, s.size-len(out))]...)
	}
	return out
}

// free gives the blocks back; the store is empty afterwards.
func (s *store) free() {
	for _, b := range s.blocks {
		blocks.Put(b)
	}
	*s = store{}
}
