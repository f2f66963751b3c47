package mux

import "time"

// MaxUnsent is how many bytes may wait in the system unsent at most.
const MaxUnsent = 256 << 10

const (
	maxBatch = 128 << 10 // bytes handed to the connection at once
	minBatch = 4 << 10
	newBatch = 16 << 10 // of a path that is not known yet

	// paceTime is for how long the path should have something to send while
	// the next batch is gathered; paceSpan and paceSize are after how much
	// writing that is looked at.
	paceTime = 5 * time.Millisecond
	paceSpan = 20 * time.Millisecond
	paceSize = 1 << 20
)

// unsentConn is a connection whose system can be told how many bytes may wait
// there unsent before it takes no more.
type unsentConn interface{ LimitUnsent(bytes int) }

// pace fits the batches to the path. What is on its way into it is what a small
// request has to wait for: 256 KiB are half a millisecond of a fast path, and
// two tenths of a second of a slow one.
type pace struct {
	batch int // bytes handed to the connection at once; a power of two
	bytes int
	took  time.Duration
	full  int // of bytes, those of full batches
}

// wrote notes a write, and reports whether batch has changed. It is not told of
// small ones, which say nothing of the path; only full ones say that it carries
// more, and none of what was left of one but how long that took.
func (p *pace) wrote(n int, took time.Duration) bool {
	p.bytes += n
	p.took += took
	if n >= p.batch {
		p.full += n
	}
	if p.took < paceSpan && p.bytes < paceSize {
		return false
	}
	fit := int(float64(p.bytes) * float64(paceTime) / float64(max(p.took, 1)))
	old, busy := p.batch, 2*p.full > p.bytes
	p.bytes, p.took, p.full = 0, 0, 0
	if p.batch > minBatch && fit < p.batch/2 { // by steps: it may have been but the machine that stood still
		p.batch /= 2
	}
	for busy && p.batch < maxBatch && fit >= 2*p.batch {
		p.batch *= 2
	}
	return p.batch != old
}

// unsent is how many bytes may wait in the system.
func (p *pace) unsent() int {
	if p.batch == maxBatch {
		return MaxUnsent
	}
	return p.batch
}
