package simnet

import (
	"math/rand/v2"
	"time"
)

// Path is what a link does to the packets of one direction. The zero Path changes nothing.
type Path struct {
	// Delay is how long a packet travels.
	Delay time.Duration
	// Jitter adds up to that much to Delay, at random, without reordering packets.
	Jitter time.Duration
	// Rate is how many bytes of UDP payload leave the link's buffer per second. If zero, there is
	// no limit.
	Rate int
	// Buffer is how many bytes may wait for their turn; more are dropped. If zero with a Rate, 100
	// ms of it.
	Buffer int
	// Loss, Duplicate and Reorder are probabilities from 0 to 1. A reordered packet travels 10 ms
	// longer.
	Loss, Duplicate, Reorder float64
	// MTU is the largest UDP payload that passes; larger packets vanish. If zero, there is no
	// limit.
	MTU int
	// Blocked lets nothing through.
	Blocked bool
}

// Link carries packets in one direction. Routes that name the same link share
// its rate and its buffer.
type Link struct {
	network *Network
	path    Path
	busy    time.Duration // when the last byte now waiting will have left
	last    time.Duration // when the packet sent last arrives, for order under jitter
	stats   LinkStats
}

// LinkStats is what a link has seen.
type LinkStats struct {
	// Packets and Bytes were let through.
	Packets, Bytes uint64
	// Overflowed were dropped because the buffer was full.
	Overflowed uint64
	// MaxQueue is the longest wait for a turn.
	MaxQueue time.Duration
	// Queue is the average wait for a turn.
	Queue time.Duration
	total time.Duration
}

// NewLink makes a link of the network.
func (n *Network) NewLink(p Path) *Link { return &Link{network: n, path: p} }

// Pair makes two identical links, one for each direction.
func (n *Network) Pair(p Path) (there, back *Link) { return n.NewLink(p), n.NewLink(p) }

// Change changes what the link does from now on.
func (l *Link) Change(change func(*Path)) {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	change(&l.path)
}

// Stats returns what the link has seen since it was made or since ResetStats.
func (l *Link) Stats() LinkStats {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	s := l.stats
	if s.Packets > 0 {
		s.Queue = s.total / time.Duration(s.Packets)
	}
	return s
}

// ResetStats resets the statistics.
func (l *Link) ResetStats() {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	l.stats = LinkStats{}
}

// admit tells when a packet of size bytes leaves the link at its far end, and
// whether it does. The caller holds the network's lock.
func (l *Link) admit(now time.Duration, size int, rng *rand.Rand) (time.Duration, bool) {
	p := &l.path
	if p.Blocked || p.MTU > 0 && size > p.MTU {
		return 0, false
	}
	at := now
	if p.Rate > 0 {
		perByte := float64(time.Second) / float64(p.Rate)
		buffer := p.Buffer
		if buffer == 0 {
			buffer = p.Rate / 10
		}
		wait := max(0, l.busy-now)
		if float64(wait)/perByte+float64(size) > float64(buffer) {
			l.stats.Overflowed++
			return 0, false
		}
		l.stats.MaxQueue = max(l.stats.MaxQueue, wait)
		l.stats.total += wait
		l.busy = now + wait + time.Duration(float64(size)*perByte)
		at = l.busy
	}
	// A packet lost by chance has used the link, as on radio.
	if p.Loss > 0 && rng.Float64() < p.Loss {
		return 0, false
	}
	at += p.Delay
	if p.Jitter > 0 {
		at += time.Duration(rng.Int64N(int64(p.Jitter)))
		at = max(at, l.last)
	}
	l.last = max(l.last, at)
	if p.Reorder > 0 && rng.Float64() < p.Reorder {
		at += 10 * time.Millisecond
	}
	l.stats.Packets++
	l.stats.Bytes += uint64(size)
	return at, true
}
