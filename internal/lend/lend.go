// Package lend has the memory that bytes are copied through. Most connections
// are idle most of the time, so memory is lent to a reader for as long as bytes
// are in it, and one that waits holds none; little at first, and more to one
// that fills it.
package lend

import (
	"io"
	"sync"
)

// What is lent, in bytes.
const (
	Small = 4 << 10
	Large = 64 << 10
	Huge  = 256 << 10
)

var (
	smalls = sync.Pool{New: func() any { return new([Small]byte) }}
	larges = sync.Pool{New: func() any { return new([Large]byte) }}
	huges  = sync.Pool{New: func() any { return new([Huge]byte) }}
)

// TakeLarge lends Large bytes until GiveLarge.
func TakeLarge() []byte { return larges.Get().(*[Large]byte)[:] }

// GiveLarge gives back what TakeLarge lent.
func GiveLarge(b []byte) { larges.Put((*[Large]byte)(b)) }

// Buffer lends memory to one reader again and again. The zero value is ready.
// It has one user at a time.
type Buffer struct {
	small *[Small]byte
	large *[Large]byte
	huge  *[Huge]byte
	size  int // of what is lent next; zero: Small
}

// Lend returns memory, the same until Return.
func (b *Buffer) Lend() []byte {
	switch b.size {
	case Huge:
		if b.huge == nil {
			b.huge = huges.Get().(*[Huge]byte)
		}
		return b.huge[:]
	case Large:
		if b.large == nil {
			b.large = larges.Get().(*[Large]byte)
		}
		return b.large[:]
	}
	if b.small == nil {
		b.small = smalls.Get().(*[Small]byte)
	}
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
	}
	if b.huge != nil {
		huges.Put(b.huge)
		b.huge = nil
	}
}

// Done is Return once the n bytes of a read are dealt with. They tell how much
// is lent for the next one: more after a read that filled its memory, less after
// one that would have done with less.
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

// Reader is a reader that takes memory only when there is something to read.
type Reader interface {
	// ReadLent reads into what b lends and returns how much that was.
	ReadLent(b *Buffer) (int, error)
}

// Read reads from r into what b lends. The bytes are valid until b.Done, which
// must follow. A reader that is not a Reader holds the memory while it waits.
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

// Holds reports whether memory is lent now.
func (b *Buffer) Holds() bool { return b.small != nil || b.large != nil || b.huge != nil }
