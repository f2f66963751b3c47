package reliable

import (
	"math"
	"time"
)

const (
	cubicC    = 0.4
	cubicBeta = 0.7
)

// cubic implements RFC 9438, with HyStart++ (RFC 9406) for leaving slow start.
type cubic struct {
	datagram int
	cwnd     float64
	ssthresh float64
	srtt     time.Duration

	wMax     float64 // in datagrams
	k        float64
	epoch    time.Duration // zero: none
	origin   float64
	wEst     float64
	recovery time.Duration // losses of packets sent before are one event

	// The values before the last reduction, in case its loss turns out to be spurious.
	undoCwnd, undoThresh, undoMax float64
	undoAt                        time.Duration

	// HyStart++.
	roundEnd           uint64
	lastMin, curMin    time.Duration
	samples, cssRounds int
	css                bool
	cssBase            time.Duration
}

func newCubic(datagram int) *cubic {
	return &cubic{
		datagram: datagram,
		cwnd:     float64(initialWindow(datagram)),
		ssthresh: math.MaxFloat64,
		recovery: -1,
		lastMin:  math.MaxInt64,
		curMin:   math.MaxInt64,
	}
}

func (c *cubic) setDatagram(size int) { c.datagram = size }
func (c *cubic) window() int          { return int(c.cwnd) }

func (c *cubic) rate() float64 {
	if c.srtt == 0 {
		return 0
	}
	gain := 1.25
	if c.cwnd < c.ssthresh {
		gain = 2
	}
	return gain * c.cwnd / c.srtt.Seconds()
}

func (c *cubic) onFeedback(f *feedback) {
	c.srtt = f.srtt
	if f.lost > 0 && f.lostSent > c.recovery {
		c.reduce(f.now)
	}
	if f.acked == 0 {
		return
	}
	if c.cwnd < c.ssthresh {
		c.hystart(f)
	}
	if !f.limited || c.recovery >= 0 && f.now-f.rtt <= c.recovery {
		return // the window is not what limits, or this packet left before the reduction
	}
	if c.cwnd < c.ssthresh {
		growth := float64(f.acked)
		if c.css {
			growth /= 4
		}
		c.cwnd += min(growth, 8*float64(max(c.datagram, 8192)))
		return
	}
	c.avoid(f)
}

// avoid grows the window after slow start: RFC 9438 §4.
func (c *cubic) avoid(f *feedback) {
	size := float64(c.datagram)
	w := c.cwnd / size
	if c.epoch == 0 {
		c.epoch = f.now
		c.wEst = w
		if w < c.wMax {
			c.k = math.Cbrt((c.wMax - w) / cubicC)
			c.origin = c.wMax
		} else {
			c.k, c.origin = 0, w
		}
	}
	t := (f.now - c.epoch + f.srtt).Seconds()
	target := c.origin + cubicC*(t-c.k)*(t-c.k)*(t-c.k)
	target = min(max(target, w), 1.5*w)
	c.wEst += 3 * (1 - cubicBeta) / (1 + cubicBeta) * float64(f.acked) / c.cwnd
	if c.wEst > target {
		c.cwnd = max(c.cwnd, c.wEst*size)
		return
	}
	c.cwnd += (target - w) / w * float64(f.acked)
}

func (c *cubic) reduce(now time.Duration) {
	c.undoCwnd, c.undoThresh, c.undoMax, c.undoAt = c.cwnd, c.ssthresh, c.wMax, now
	w := c.cwnd / float64(c.datagram)
	if w < c.wMax {
		c.wMax = w * (1 + cubicBeta) / 2 // fast convergence
	} else {
		c.wMax = w
	}
	c.cwnd = max(c.cwnd*cubicBeta, 2*float64(c.datagram))
	c.ssthresh = c.cwnd
	c.epoch = 0
	c.recovery = now
}

func (c *cubic) onSpurious(now time.Duration) {
	if c.undoCwnd > c.cwnd && now-c.undoAt < 4*max(c.srtt, 10*time.Millisecond) {
		c.cwnd, c.ssthresh, c.wMax, c.epoch = c.undoCwnd, c.undoThresh, c.undoMax, 0
		c.undoCwnd = 0
	}
}

func (c *cubic) onPersistent(now time.Duration) {
	c.reduce(now)
	c.cwnd = 2 * float64(c.datagram)
}

// hystart leaves slow start when round trips grow: RFC 9406 §4.2.
func (c *cubic) hystart(f *feedback) {
	if f.priorDelivered >= c.roundEnd {
		c.roundEnd = f.delivered
		c.lastMin, c.curMin, c.samples = c.curMin, math.MaxInt64, 0
		if c.css {
			if c.cssRounds++; c.cssRounds >= 5 {
				c.ssthresh = c.cwnd
				return
			}
		}
	}
	if f.rtt == 0 {
		return
	}
	c.curMin = min(c.curMin, f.rtt)
	if c.samples++; c.samples < 8 || c.lastMin == math.MaxInt64 {
		return
	}
	threshold := min(max(c.lastMin/8, 4*time.Millisecond), 16*time.Millisecond)
	switch {
	case !c.css && c.curMin >= c.lastMin+threshold:
		c.css, c.cssBase, c.cssRounds = true, c.curMin, 0
	case c.css && c.curMin < c.cssBase:
		c.css = false
	}
}
