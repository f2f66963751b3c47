package pump

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"adit/tunnel/relay/shape"
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
	rng   *rand.Rand
	tried int
}

func (r *reluctant) TryWrite(b []byte) int {
	n, _ := r.Write(b[:r.rng.IntN(len(b)+1)])
	r.tried += n
	return n
}

// TestMoveCountsWhatWasTakenDirectly moves everything once and in order, and
// counts all of it, whether a bandwidth bounds it or not; a bound flow is never
// written past its bound.
func TestMoveCountsWhatWasTakenDirectly(t *testing.T) {
	for _, rate := range []int64{0, 1 << 30} {
		rng := rand.New(rand.NewPCG(1, 2))
		want := make([]byte, 1<<20)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		var bucket shape.Bucket
		bucket.SetRate(rate)
		dst := &reluctant{rng: rng}
		var moved atomic.Int64
		counted := 0
		total, err := move(context.Background(), dst, &offering{left: want, rng: rng}, &moved,
			func() shape.Buckets { return shape.Buckets{&bucket} }, func(n int) { counted += n })
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(dst.Bytes(), want) {
			t.Errorf("rate %d: got %d bytes that differ from the %d sent", rate, dst.Len(), len(want))
		}
		if total != int64(len(want)) || counted != len(want) || moved.Load() != total {
			t.Errorf("rate %d: counted %d, %d and %d of %d bytes", rate, total, counted, moved.Load(), len(want))
		}
		if bounded := rate > 0; (dst.tried > 0) == bounded {
			t.Errorf("rate %d: %d bytes were taken directly", rate, dst.tried)
		}
	}
}
