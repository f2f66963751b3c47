// Package linktest provides stream ends for tests of code that copies from one stream to another.
package linktest

import (
	"bytes"
	"io"
	"math/rand/v2"
)

// Offering is a stream that, at random, offers its bytes to a waiting reader first.
type Offering struct {
	Left []byte
	Rand *rand.Rand
}

func (o *Offering) Read(b []byte) (int, error) { return o.ReadDirect(b, nil) }

// ReadDirect behaves like that of link's streams.
func (o *Offering) ReadDirect(b []byte, take func([]byte) int) (int, error) {
	for take != nil && len(o.Left) > 0 && o.Rand.IntN(4) > 0 {
		part := o.Left[:min(len(o.Left), 1+o.Rand.IntN(9000))]
		n := take(part)
		o.Left = o.Left[n:]
		if n < len(part) {
			break
		}
	}
	if len(o.Left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, o.Left[:1+o.Rand.IntN(len(o.Left))])
	o.Left = o.Left[n:]
	return n, nil
}

// Reluctant is a socket that accepts a random amount without waiting.
type Reluctant struct {
	bytes.Buffer
	Rand  *rand.Rand
	Tried int // bytes that were taken so
}

// TryWrite behaves like that of non-blocking sockets.
func (r *Reluctant) TryWrite(b []byte) int {
	n, _ := r.Write(b[:r.Rand.IntN(len(b)+1)])
	r.Tried += n
	return n
}
