package policy

import (
	"net/netip"
	"time"
)

// bucket is a token bucket.
type bucket struct {
	tokens float64
	at     time.Time
}

const maxBuckets = 65_536

// Limits on password attempts: ten at once, then one more every six seconds.
const (
	triesBurst = 10
	triesRate  = 1.0 / 6
)

func (p *Policy) burst() float64 {
	if p.doc.Burst > 0 {
		return float64(p.doc.Burst)
	}
	return max(p.doc.Rate, 1)
}

// tokens returns what a bucket holds now. p.mu must be held.
func (p *Policy) tokens(set map[netip.Prefix]*bucket, who netip.Prefix, rate, burst float64, now time.Time) float64 {
	b := set[who]
	if b == nil {
		return burst
	}
	return min(burst, b.tokens+now.Sub(b.at).Seconds()*rate)
}

// spend takes a token, if there is one. p.mu must be held.
func (p *Policy) spend(set map[netip.Prefix]*bucket, who netip.Prefix, rate, burst float64, now time.Time) bool {
	have := p.tokens(set, who, rate, burst, now)
	if have < 1 {
		return false
	}
	b := set[who]
	if b == nil {
		if len(set) >= maxBuckets { // full buckets carry no information
			for k := range set {
				if p.tokens(set, k, rate, burst, now) >= burst {
					delete(set, k)
				}
			}
			if len(set) >= maxBuckets {
				clear(set)
			}
		}
		b = &bucket{}
		set[who] = b
	}
	b.tokens, b.at = have-1, now
	return true
}

// try takes a password attempt before it is made, so that concurrent attempts count too.
// back returns it if the password was right.
func (p *Policy) try(who netip.Prefix, now time.Time) (back func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.spend(p.failed, who, triesRate, triesBurst, now) {
		return nil, false
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if b := p.failed[who]; b == nil {
			return
		} else if b.tokens++; b.tokens >= triesBurst {
			delete(p.failed, who) // same as an address that never tried
		}
	}, true
}
