// Package shape limits flows of bytes to bandwidths: excess bytes wait, and nothing is
// refused. A Bucket is one bandwidth, an Account is what one client may carry and has
// carried, and a Meter is what the bytes of one endpoint wait for and where they are
// counted. How much a client may have is decided by the packages above it.
package shape

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	minBurst = 4 << 10
	maxPiece = 64 << 10
	minPiece = 512
	// look is how often a waiting caller checks whether the rate has changed.
	look = 200 * time.Millisecond
)

// Bucket shares a bandwidth among all that take from it, first come, first served. The
// zero value has no limit.
type Bucket struct {
	rate atomic.Int64 // bytes per second; 0: no limit

	mu     sync.Mutex
	taken  float64 // bytes that were requested
	served float64 // bytes that may have passed by now
	at     time.Time
}

// SetRate sets the bandwidth in bytes per second, also for those already waiting. If zero
// or less, there is no limit.
func (b *Bucket) SetRate(rate int64) {
	rate = max(rate, 0)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(time.Now())
	b.rate.Store(rate)
}

// Rate returns the bandwidth in bytes per second, or 0 for no limit.
func (b *Bucket) Rate() int64 {
	if b == nil {
		return 0
	}
	return b.rate.Load()
}

func burst(rate float64) float64 { return max(rate/8, minBurst) }

// advance brings served up to date. b.mu must be held.
func (b *Bucket) advance(now time.Time) {
	rate := float64(b.rate.Load())
	if rate == 0 {
		b.taken, b.served, b.at = 0, 0, now
		return
	}
	if b.at.IsZero() {
		b.at, b.served = now, b.taken+burst(rate)
	}
	b.served = min(b.served+now.Sub(b.at).Seconds()*rate, b.taken+burst(rate))
	b.at = now
}

// Take waits until n more bytes may pass, or ctx ends. A nil bucket has no limit.
func (b *Bucket) Take(ctx context.Context, n int) error {
	if b == nil || n <= 0 || b.rate.Load() == 0 {
		return nil
	}
	b.mu.Lock()
	b.advance(time.Now())
	b.taken += float64(n)
	ticket := b.taken
	wait := b.wait(ticket)
	b.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(min(wait, look))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			b.mu.Lock()
			b.served += float64(n) // those behind need not wait for these bytes
			b.mu.Unlock()
			return ctx.Err()
		}
		b.mu.Lock()
		b.advance(time.Now())
		wait = b.wait(ticket)
		b.mu.Unlock()
		if wait <= 0 {
			return nil
		}
		timer.Reset(min(wait, look))
	}
}

// wait returns how long a ticket has to wait. b.mu must be held and served be up to date.
func (b *Bucket) wait(ticket float64) time.Duration {
	rate := float64(b.rate.Load())
	if rate == 0 || ticket > b.taken || b.served >= ticket {
		return 0 // there is no limit now, or there was none in between
	}
	return time.Duration((ticket-b.served)/rate*1e9) + time.Microsecond
}

// Try takes n bytes if they may pass now. It is for packets, which cannot wait.
func (b *Bucket) Try(n int) bool {
	if b == nil || b.rate.Load() == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(time.Now())
	if b.rate.Load() != 0 && b.served < b.taken+float64(n) {
		return false
	}
	b.taken += float64(n)
	return true
}

// Buckets is a list of buckets that all limit one flow.
type Buckets []*Bucket

// rate returns the smallest of their rates, or 0 if none has a limit.
func (l Buckets) rate() int64 {
	var rate int64
	for _, b := range l {
		if r := b.Rate(); r != 0 && (rate == 0 || r < rate) {
			rate = r
		}
	}
	return rate
}

// Free reports whether none of them has a limit now.
func (l Buckets) Free() bool { return l.rate() == 0 }

// Piece returns how many of n bytes should move at a time, so that a slow flow is even.
func (l Buckets) Piece(n int) int {
	rate := l.rate()
	if rate == 0 {
		return n
	}
	return min(n, int(min(max(rate/16, minPiece), maxPiece)))
}

// Take waits until n bytes may pass through all of them.
func (l Buckets) Take(ctx context.Context, n int) error {
	for _, b := range l {
		if err := b.Take(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// Try takes n bytes if they may pass through all of them now. If one refuses, what the
// others have given is not returned.
func (l Buckets) Try(n int) bool {
	for _, b := range l {
		if !b.Try(n) {
			return false
		}
	}
	return true
}

// Write writes p in pieces, each when it may pass.
func (l Buckets) Write(ctx context.Context, w io.Writer, p []byte) (n int, err error) {
	for {
		piece := l.Piece(len(p) - n)
		if err := l.Take(ctx, piece); err != nil {
			return n, err
		}
		m, err := w.Write(p[n : n+piece])
		n += m
		if err != nil || n >= len(p) {
			return n, err
		}
	}
}

// Read reads a piece, and returns once it may pass.
func (l Buckets) Read(ctx context.Context, r io.Reader, p []byte) (int, error) {
	n, err := r.Read(p[:l.Piece(len(p))])
	if wait := l.Take(ctx, n); wait != nil && err == nil {
		err = wait
	}
	return n, err
}
