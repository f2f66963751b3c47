package reliable

import "time"

// How long an idle session stays silent. The bindings of NATs on the path last for an unknown time;
// once a binding is forgotten, nothing comes in until something goes out again. So the responder
// asks first, from outside, after an interval that the initiator sets. If its question arrives, the
// binding has lasted that long. If it does not, the initiator itself asks a little later, which
// reopens the path, and has learned that the interval was too long.
const (
	startInterval = 10 * time.Second
	leastInterval = 3 * time.Second
	// mostInterval, askAnyway and the timeout together stay under the 20 seconds within which the
	// death of an idle session must be noticed.
	mostInterval = 15 * time.Second
	// askAnyway is how much later the initiator itself asks. By then, the responder's question has
	// been repeated several times, so that random losses do not look like a forgotten binding.
	askAnyway = 1500 * time.Millisecond
	// heldTimes is how often an interval must have worked before a longer one is tried;
	// rememberLimit is how long an interval that did not work is remembered.
	heldTimes     = 3
	rememberLimit = time.Hour
)

// keepAlive is the state of the keep-alives. The session's mu guards it.
type keepAlive struct {
	adaptive bool
	interval time.Duration
	tell     bool // the initiator's interval is to be told
	asked    bool // the initiator had to ask itself
	held     int
	limit    time.Duration // an interval that did not hold; zero: none known
	limitAt  time.Duration
}

func newKeepAlive(configured time.Duration) keepAlive {
	if configured > 0 {
		return keepAlive{interval: configured}
	}
	return keepAlive{adaptive: true, interval: startInterval}
}

// silence returns how long nothing may be heard before this side asks.
func (s *Session) silence() time.Duration {
	if s.keep.adaptive && s.cfg.Initiator {
		return s.keep.interval + askAnyway
	}
	return s.keep.interval
}

// keepHeard is called with each packet before it counts as heard, and learns about the binding from
// the silence before it.
func (s *Session) keepHeard(now time.Duration) {
	k := &s.keep
	if !k.adaptive || !s.cfg.Initiator {
		return
	}
	switch silent := now - s.lastReceived; {
	case k.asked:
		k.asked = false
		if silent < k.interval+askAnyway || silent > k.interval+2*askAnyway {
			return // something else was heard meanwhile; or the machine slept
		}
		k.held, k.limit, k.limitAt = 0, k.interval, now
		k.set(max(k.interval*2/3, leastInterval))
	case silent > k.interval*9/10 && s.unanswered == 0:
		if k.held++; k.held < heldTimes {
			return
		}
		k.held = 0
		if k.limit > 0 && now-k.limitAt > rememberLimit {
			k.limit = 0
		}
		longer := min(k.interval*5/4, mostInterval)
		if k.limit > 0 {
			longer = min(longer, k.limit*9/10)
		}
		k.set(max(k.interval, longer))
	}
}

func (k *keepAlive) set(interval time.Duration) {
	if interval != k.interval {
		k.interval, k.tell = interval, true
	}
}

// forget drops what was learned: another path has other NATs.
func (k *keepAlive) forget() {
	if k.adaptive {
		k.set(startInterval)
		k.asked, k.held, k.limit = false, 0, 0
	}
}

// told sets the interval that the initiator has announced.
func (k *keepAlive) told(milliseconds uint64) {
	if k.adaptive {
		k.interval = min(max(time.Duration(min(milliseconds, 1<<32))*time.Millisecond, time.Second), mostInterval)
	}
}
