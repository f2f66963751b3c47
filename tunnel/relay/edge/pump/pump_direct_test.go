package pump

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"adit/tunnel/link/linktest"
	"adit/tunnel/relay/shape"
)

// TestMoveCountsWhatWasTakenDirectly checks that everything is moved once and in order, and
// counted, with or without a bandwidth limit, and that a limited flow never exceeds its limit.
func TestMoveCountsWhatWasTakenDirectly(t *testing.T) {
	for _, rate := range []int64{0, 1 << 30} {
		rng := rand.New(rand.NewPCG(1, 2))
		want := make([]byte, 1<<20)
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		var bucket shape.Bucket
		bucket.SetRate(rate)
		dst := &linktest.Reluctant{Rand: rng}
		var moved atomic.Int64
		counted := 0
		total, err := move(context.Background(), dst, &linktest.Offering{Left: want, Rand: rng}, &moved,
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
		if bounded := rate > 0; (dst.Tried > 0) == bounded {
			t.Errorf("rate %d: %d bytes were taken directly", rate, dst.Tried)
		}
	}
}
