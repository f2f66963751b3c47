package shape

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestBandwidthIsSharedByAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Bucket
		b.SetRate(100_000)
		start := time.Now()
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				var out bytes.Buffer
				if n, err := (Buckets{&b}).Write(t.Context(), &out, make([]byte, 250_000)); n != 250_000 || err != nil || out.Len() != n {
					t.Errorf("got %d, %v", n, err)
				}
			})
		}
		group.Wait()
		// 1,000,000 bytes, of which an eighth of a second's may come at once.
		if took := time.Since(start); took < 9800*time.Millisecond || took > 10100*time.Millisecond {
			t.Errorf("1 MB at 100 kB/s took %v", took)
		}
	})
}

func TestIdleTimeGivesNoMoreThanABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Bucket
		b.SetRate(80_000)
		if err := b.Take(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		start := time.Now()
		for range 80 {
			b.Take(t.Context(), 1000)
		}
		if took := time.Since(start); took < 800*time.Millisecond || took > time.Second {
			t.Errorf("80 kB at 80 kB/s after an hour took %v", took)
		}
	})
}

func TestChangedRateReachesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Bucket
		b.SetRate(1024)
		done := make(chan time.Duration, 1)
		start := time.Now()
		go func() {
			b.Take(t.Context(), 1_000_000)
			done <- time.Since(start)
		}()
		time.Sleep(10 * time.Second)
		b.SetRate(1_000_000)
		if took := <-done; took < 10*time.Second || took > 12*time.Second {
			t.Errorf("faster: took %v", took)
		}
		b.SetRate(1024)
		go func() {
			b.Take(t.Context(), 1_000_000)
			done <- 0
		}()
		time.Sleep(time.Second)
		b.SetRate(0)
		free := time.Now()
		<-done
		if took := time.Since(free); took > time.Second {
			t.Errorf("no bound any more: took %v", took)
		}
	})
}

func TestWhoGivesUpHoldsNobodyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Bucket
		b.SetRate(10_000)
		b.Take(t.Context(), minBurst)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Take(ctx, 1_000_000); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		start := time.Now()
		b.Take(t.Context(), 10_000)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("the next waited %v", took)
		}
	})
}

func TestPacketsOverTheRateAreNotLetThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Bucket
		b.SetRate(100_000)
		passed := 0
		for range 1000 { // 2 MB in one second
			if b.Try(2000) {
				passed += 2000
			}
			time.Sleep(time.Millisecond)
		}
		if passed < 95_000 || passed > 115_000 {
			t.Errorf("%d bytes passed in a second", passed)
		}
	})
}

func TestZeroBucketBoundsNothing(t *testing.T) {
	var none *Bucket
	for _, b := range []*Bucket{none, new(Bucket)} {
		if err := b.Take(t.Context(), 1<<30); err != nil || !b.Try(1<<30) {
			t.Error("it bounds")
		}
	}
	if n := (Buckets{none}).Piece(1 << 20); n != 1<<20 {
		t.Errorf("a piece of %d", n)
	}
}

func BenchmarkTakeUnbounded(b *testing.B) {
	var bucket Bucket
	l := Buckets{&bucket, nil}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		l.Take(ctx, 1000)
	}
}
