package reliable

import "time"

type bbrState int

const (
	bbrStartup bbrState = iota
	bbrDrain
	bbrProbeBW
	bbrProbeRTT
)

const (
	bbrStartupGain   = 2.77 // 4 ln 2: draft-ietf-ccwg-bbr §5.6
	bbrWindowGain    = 2.0
	bbrMinRTTWindow  = 10 * time.Second
	bbrProbeRTTTime  = 200 * time.Millisecond
	bbrLossThreshold = 0.02
	bbrBeta          = 0.7
)

// bbrCycle are the pacing gains of the phases of ProbeBW.
var bbrCycle = [...]float64{1.25, 0.75, 1, 1, 1, 1, 1, 1}

// bbr models the path by its bottleneck's rate and its shortest round trip, as BBR does. Its cycle
// is that of version 1; the floor of its ProbeRTT and its bound on the bytes in flight under loss
// are those of version 3 (draft-ietf-ccwg-bbr). It differs in one respect: loss counts as
// congestion only while round trips show a queue, because radio links lose packets without one.
type bbr struct {
	datagram int
	state    bbrState
	cwnd     int

	bw         maxFilter
	round      uint64
	roundEnd   uint64
	roundStart bool

	minRTT      time.Duration
	minRTTAt    time.Duration // when it was last measured, or seen not to have grown
	probeDone   time.Duration
	probeRound  uint64
	priorWindow int

	fullBW      float64
	fullBWCount int
	full        bool

	cycle      int
	cycleStart time.Duration
	gain       float64

	// Per round: bytes delivered and lost, and the shortest round trip.
	roundAcked, roundLost int
	roundMin              time.Duration
	inflightHi            int // zero: no bound
	lossRounds            int
	lossCycle             bool
	lastRoundMin          time.Duration // of the round before

	shared bbrShared

	// Aggregation: how much more than the rate's share arrives at once.
	aggStart         time.Duration
	aggAcked         int
	extra, lastExtra int
	extraRound       uint64
}

func newBBR(datagram int) *bbr {
	return &bbr{datagram: datagram, cwnd: initialWindow(datagram), gain: bbrStartupGain}
}

func (b *bbr) onPersistent(now time.Duration) { b.cwnd = b.minWindow() }
func (b *bbr) minWindow() int                 { return 4 * b.datagram }

func (b *bbr) setDatagram(size int) {
	b.datagram = size
	if b.shared.bound != nil {
		b.shared.bound.setDatagram(size)
	}
}

func (b *bbr) onSpurious(now time.Duration) {
	if b.shared.bound != nil {
		b.shared.bound.onSpurious(now)
	}
}

func (b *bbr) window() int {
	if b.state == bbrProbeRTT {
		return max(b.bdp(0.5), b.minWindow())
	}
	return b.cwnd
}

func (b *bbr) rate() float64 {
	if b.minRTT == 0 {
		return 0
	}
	rate := b.gain * b.bw.max()
	if !b.full {
		// Little data has been sent so far, which says little about the path: a first window may
		// always leave.
		rate = max(rate, bbrStartupGain*float64(initialWindow(b.datagram))/b.minRTT.Seconds())
	}
	return rate
}

// bdp returns gain times what the path itself holds.
func (b *bbr) bdp(gain float64) int {
	if b.minRTT == 0 {
		return initialWindow(b.datagram)
	}
	return int(gain * b.bw.max() * b.minRTT.Seconds())
}

// queued reports whether the round's shortest round trip shows a queue.
func (b *bbr) queued() bool {
	return b.roundMin > b.threshold()
}

func (b *bbr) onFeedback(f *feedback) {
	b.updateRound(f)
	b.updateMinRTT(f)
	b.roundAcked += f.acked
	b.roundLost += f.lost
	if f.rate > 0 && (!f.appLimited || f.rate >= b.bw.max()) {
		b.bw.add(b.round, f.rate)
	}
	b.updateAggregation(f)
	b.updateState(f)
	b.share(f)
	b.updateWindow(f)
}

func (b *bbr) updateRound(f *feedback) {
	b.roundStart = false
	if f.acked > 0 && f.priorDelivered >= b.roundEnd {
		b.roundEnd = f.delivered
		b.round++
		b.roundStart = true
		b.judgeRound(f)
		b.lastRoundMin = b.roundMin
		b.roundAcked, b.roundLost, b.roundMin = 0, 0, 0
	}
	if f.rtt > 0 && (b.roundMin == 0 || f.rtt < b.roundMin) {
		b.roundMin = f.rtt
	}
}

// judgeRound limits the bytes in flight if the round that ended lost too much to a full queue.
func (b *bbr) judgeRound(f *feedback) {
	if float64(b.roundLost) <= bbrLossThreshold*float64(b.roundAcked+b.roundLost) || !b.queued() {
		b.lossRounds = 0
		return
	}
	b.lossRounds++
	b.lossCycle = true
	floor := b.bdp(1)
	if b.state == bbrStartup {
		if b.lossRounds >= 2 {
			b.full = true
			b.inflightHi = max(floor, int(bbrBeta*float64(f.prior)))
		}
		return
	}
	at := f.prior
	if b.inflightHi > 0 {
		at = min(at, b.inflightHi)
	}
	b.inflightHi = max(floor, int(bbrBeta*float64(at)), b.minWindow())
}

func (b *bbr) updateMinRTT(f *feedback) {
	if f.rtt == 0 {
		return
	}
	expired := f.now-b.minRTTAt > bbrMinRTTWindow
	switch {
	case b.minRTT == 0 || f.rtt <= b.minRTT:
		b.minRTT, b.minRTTAt = f.rtt, f.now
	case f.rtt <= b.minRTT+max(time.Millisecond/2, b.minRTT/32):
		// The queue was empty just now, so there is no need to drain it for a measurement.
		b.minRTTAt = f.now
	case expired && b.state != bbrProbeRTT && b.full:
		b.state, b.gain = bbrProbeRTT, 1
		b.priorWindow = b.cwnd
		b.probeDone = 0
		b.minRTT, b.minRTTAt = f.rtt, f.now
	}
}

func (b *bbr) updateAggregation(f *feedback) {
	bw := b.bw.max()
	if bw == 0 {
		return
	}
	if b.round-b.extraRound >= 5 {
		b.lastExtra, b.extra, b.extraRound = b.extra, 0, b.round
	}
	expected := int(bw * (f.now - b.aggStart).Seconds())
	if b.aggAcked <= expected || f.appLimited && f.inflight == 0 {
		b.aggStart, b.aggAcked, expected = f.now, 0, 0
	}
	b.aggAcked += f.acked
	if over := b.aggAcked - expected; over > b.extra {
		// At most what the rate moves in 100 ms, and what is in flight.
		b.extra = min(over, b.cwnd, int(bw*0.1))
	}
}

func (b *bbr) updateState(f *feedback) {
	if b.roundStart && !b.full && !f.appLimited {
		if bw := b.bw.max(); bw >= b.fullBW*1.25 {
			b.fullBW, b.fullBWCount = bw, 0
		} else if b.fullBWCount++; b.fullBWCount >= 3 {
			b.full = true
		}
	}
	switch b.state {
	case bbrStartup:
		if b.full {
			b.state, b.gain = bbrDrain, 1/bbrStartupGain
		}
	case bbrDrain:
		if f.inflight <= b.bdp(1)+b.slack()/2 {
			b.enterProbeBW(f.now)
		}
	case bbrProbeBW:
		b.advanceCycle(f)
	case bbrProbeRTT:
		if b.probeDone == 0 && f.inflight <= b.window() {
			b.probeDone, b.probeRound = f.now+bbrProbeRTTTime, b.round
		}
		if b.probeDone > 0 && f.now >= b.probeDone && b.round > b.probeRound {
			b.minRTTAt = f.now
			b.cwnd = max(b.cwnd, b.priorWindow)
			b.enterProbeBW(f.now)
		}
	}
}

func (b *bbr) enterProbeBW(now time.Duration) {
	b.state = bbrProbeBW
	b.cycle, b.cycleStart = 2, now
	b.gain = bbrCycle[b.cycle]
}

func (b *bbr) advanceCycle(f *feedback) {
	long := f.now-b.cycleStart > max(b.minRTT, time.Millisecond)
	next := long
	switch {
	case b.gain > 1:
		next = long && (f.prior >= b.bdp(b.gain) || f.lost > 0 || !f.limited)
		if b.inflightHi > 0 && f.prior >= b.inflightHi {
			next = next || long
		}
	case b.gain < 1:
		// Until the queue is gone, including one that an overestimated rate has built up.
		next = f.inflight <= b.bdp(1) || f.now-b.cycleStart > 3*max(b.minRTT, time.Millisecond)
	}
	if !next {
		return
	}
	b.cycle = (b.cycle + 1) % len(bbrCycle)
	b.cycleStart = f.now
	b.gain = bbrCycle[b.cycle]
	if b.cycle == 0 {
		// Try for more again after a cycle without congestion.
		if !b.lossCycle && b.inflightHi > 0 {
			if b.inflightHi = b.inflightHi * 5 / 4; b.inflightHi > b.bdp(bbrWindowGain)+b.slack() {
				b.inflightHi = 0
			}
		}
		b.lossCycle = false
	}
}

// slack is what batching on both sides adds to what the path holds.
func (b *bbr) slack() int {
	quantum := min(max(int(b.bw.max()/1000), 2*b.datagram), 64<<10)
	return 3 * quantum
}

func (b *bbr) updateWindow(f *feedback) {
	target := b.bdp(bbrWindowGain) + b.slack() + max(b.extra, b.lastExtra)
	if b.full {
		b.cwnd = min(b.cwnd+f.acked, target)
	} else if b.cwnd < target || f.delivered < uint64(initialWindow(b.datagram)) {
		b.cwnd += f.acked
	}
	if b.inflightHi > 0 && b.full {
		b.cwnd = min(b.cwnd, b.inflightHi+b.slack())
	}
	if bound := b.sharedWindow(f.now); bound > 0 {
		b.cwnd = min(b.cwnd, bound)
	}
	b.cwnd = max(b.cwnd, b.minWindow())
}

// maxFilter is the maximum over the last ten rounds, tracked by the three best values as in
// Kathleen Nichols' windowed filter.
type maxFilter struct {
	at    [3]uint64
	value [3]float64
}

const maxFilterRounds = 10

func (m *maxFilter) max() float64 { return m.value[0] }

func (m *maxFilter) add(now uint64, v float64) {
	switch {
	case v >= m.value[0] || now-m.at[2] > maxFilterRounds:
		m.at, m.value = [3]uint64{now, now, now}, [3]float64{v, v, v}
		return
	case v >= m.value[1]:
		m.at[1], m.value[1] = now, v
		m.at[2], m.value[2] = now, v
	case v >= m.value[2]:
		m.at[2], m.value[2] = now, v
	}
	switch age := now - m.at[0]; {
	case age > maxFilterRounds:
		m.shift()
		m.at[2], m.value[2] = now, v
		if now-m.at[0] > maxFilterRounds {
			m.shift()
			m.at[2], m.value[2] = now, v
		}
	case m.at[1] == m.at[0] && age > maxFilterRounds/4:
		m.at[1], m.value[1] = now, v
		m.at[2], m.value[2] = now, v
	case m.at[2] == m.at[1] && age > maxFilterRounds/2:
		m.at[2], m.value[2] = now, v
	}
}

func (m *maxFilter) shift() {
	m.at[0], m.value[0] = m.at[1], m.value[1]
	m.at[1], m.value[1] = m.at[2], m.value[2]
}
