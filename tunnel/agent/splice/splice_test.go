package splice

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
)

// offering is a stream whose bytes are offered to a waiting reader first.
type offering struct {
	left []byte
	rng  *rand.Rand
}

func (o *offering) Read(b []byte) (int, error) { return o.ReadDirect(b, nil) }

func (o *offering) ReadDirect(b []byte, take func([]byte) int) (int, error) {
	for take != nil && len(o.left) > 0 && o.rng.IntN(4) > 0 {
		part := o.left[:min(len(o.left), 1+o.rng.IntN(9000))]
		n := take(part)
		o.left = o.left[n:]
		if n < len(part) {
			break
		}
	}
	if len(o.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, o.left[:1+o.rng.IntN(len(o.left))])
	o.left = o.left[n:]
	return n, nil
}

// reluctant is a socket that takes without waiting as much as chance wills.
type reluctant struct {
	bytes.Buffer
	rng *rand.Rand
}

func (r *reluctant) TryWrite(b []byte) int {
	n, _ := r.Write(b[:r.rng.IntN(len(b)+1)])
	return n
}

// TestEachByteIsShownOnceAndFirst holds what the inspector sees: every byte in
// order, once, and before the origin has it, whoever writes it.
func TestEachByteIsShownOnceAndFirst(t *testing.T) {
	want := make([]byte, 2<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	dst := &reluctant{rng: rng}
	var shown []byte
	late := false
	err := Half(dst, &offering{left: want, rng: rng}, func(b []byte) {
		late = late || dst.Len() > len(shown)
		shown = append(shown, b...)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if late || dst.Len() > len(shown) {
		t.Error("the origin had bytes before they were shown")
	}
	if !bytes.Equal(shown, want) {
		t.Errorf("shown: %d bytes that differ from the %d sent", len(shown), len(want))
	}
	if !bytes.Equal(dst.Bytes(), want) {
		t.Errorf("written: %d bytes that differ from the %d sent", dst.Len(), len(want))
	}
}
