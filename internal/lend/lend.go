// Package lend provides the buffers through which bytes are copied. Most connections are idle most
// of the time, so a reader borrows memory only while there are bytes in it, and holds none while it
// waits. A reader first gets a small buffer, and larger ones if it fills them.
package lend

import (
	"io"
	"sync"
	"sync/atomic"
)

// What is lent, in bytes.
const (
	Small = 4 << 10
	Large = 64 << 10
	Huge  = 4 * (64<<10 - 12) // what fills TLS records, with the headers of package mux
)

// How many of the larger ones buffers have at a time, at most, in the whole
// process: a reader that stands still while what it read is written holds its
// memory, and there may be as many of those as somebody likes to make. Beyond it
// readers get the next smaller size, and are served all the same.
const (
	MostHuge  = 64   // 16 MiB
	MostLarge = 1024 // 64 MiB
)

var hugeLent, largeLent atomic.Int64

// count takes one of what there may be most of, if there is one.
func count(lent *atomic.Int64, most int64) bool {
	if lent.Add(1) <= most {
		return true
	}
	lent.Add(-1)
	return false
}

var (
	smalls = sync.Pool{New: func() any { return new([Small]byte) }}
	larges Pool[[Large]byte]
	huges  Pool[[Huge]byte]
)

// TakeLarge lends Large bytes, until GiveLarge.
func TakeLarge() []byte { return larges.Get()[:] }

// GiveLarge returns what TakeLarge lent.
func GiveLarge(b []byte) { larges.Put((*[Large]byte)(b)) }

// Buffer lends memory to one reader again and again. The zero value is ready for use. It must not
// be used concurrently.
type Buffer struct {
	small *[Small]byte
	large *[Large]byte
	huge  *[Huge]byte
	size  int // of what is lent next; zero: Small
}

// Lend returns memory, always the same until Return.
func (b *Buffer) Lend() []byte {
	switch {
	case b.huge != nil:
		return b.huge[:]
	case b.large != nil:
		return b.large[:]
	case b.small != nil:
		return b.small[:]
	case b.size == Huge && count(&hugeLent, MostHuge):
		b.huge = huges.Get()
		return b.huge[:]
	case b.size >= Large && count(&largeLent, MostLarge):
		b.large = larges.Get()
		return b.large[:]
	}
	b.small = smalls.Get().(*[Small]byte)
	return b.small[:]
}

// Return gives back what was lent, if anything.
func (b *Buffer) Return() {
	if b.small != nil {
		smalls.Put(b.small)
		b.small = nil
	}
	if b.large != nil {
		larges.Put(b.large)
		b.large = nil
		largeLent.Add(-1)
	}
	if b.huge != nil {
		huges.Put(b.huge)
		b.huge = nil
		hugeLent.Add(-1)
	}
}

// Done is like Return, after the n bytes of a read have been processed. n determines how much the
// next read gets: more if this one filled its memory, less if it could have done with less.
func (b *Buffer) Done(n int) {
	b.Return()
	switch {
	case n < Small:
		b.size = Small
	case n < Large:
		b.size = Large
	default:
		b.size = Huge
	}
}

// Reader is a reader that borrows memory only when there is something to read.
type Reader interface {
	// ReadLent reads into memory that b lends, and returns how much it read.
	ReadLent(b *Buffer) (int, error)
}

// Read reads from r into memory that b lends. The bytes are valid until b.Done, which must be
// called. If r is not a Reader, it holds the memory while it waits.
func Read(r io.Reader, b *Buffer) ([]byte, error) {
	var n int
	var err error
	if lent, ok := r.(Reader); ok {
		n, err = lent.ReadLent(b)
	} else {
		n, err = r.Read(b.Lend())
	}
	if n == 0 {
		return nil, err
	}
	return b.Lend()[:n], err
}

// Holds reports whether memory is currently lent.
func (b *Buffer) Holds() bool { return b.small != nil || b.large != nil || b.huge != nil }
