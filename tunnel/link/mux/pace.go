package mux

import "time"

// MaxUnsent is how many bytes may wait in the system unsent, at most.
const MaxUnsent = 256 << 10

const (
	maxBatch = 128 << 10 // bytes handed to the connection at once
	minBatch = 4 << 10
	newBatch = 16 << 10 // of a path that is not known yet

	// paceTime is how long the path should have something to send while the next batch is gathered.
	// paceSpan and paceSize are how much writing passes before that is evaluated.
	paceTime = 5 * time.Millisecond
	paceSpan = 20 * time.Millisecond
	paceSize = 1 << 20
)

// unsentConn is a connection that can limit how many unsent bytes the system accepts.
type unsentConn interface{ LimitUnsent(bytes int) }

// pace adapts the size of batches to the path. A small request has to wait for whatever is queued
// ahead of it: 256 KiB are half a millisecond on a fast path, and two tenths of a second on a slow
// one.
type pace struct {
	batch int // bytes handed to the connection at once; a power of two
	bytes int
	took  time.Duration
	full  int // of bytes, those of full batches
}

// wrote records a write, and reports whether batch has changed. It must not be called for small
// writes, which say nothing about the path. Only full writes show that the path carries more; of
// the remainder of a write, only the time it took counts.
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

// unsent returns how many bytes may wait in the system.
func (p *pace) unsent() int {
	if p.batch == maxBatch {
		return MaxUnsent
	}
	return p.batch
}
