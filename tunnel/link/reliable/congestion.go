package reliable

import "time"

// Congestion names a congestion controller.
type Congestion string

// The controllers. BBR is the default: docs/decisions/0002 has the figures.
const (
	BBR   Congestion = "bbr"
	CUBIC Congestion = "cubic"
)

// feedback is what one ACK, or one expiry of the loss timer, has revealed. Times are relative to
// the session's start, sizes are bytes of UDP payload.
type feedback struct {
	now      time.Duration
	acked    int           // newly acknowledged
	lost     int           // newly declared lost
	lostSent time.Duration // when the newest of the lost was sent
	rtt      time.Duration // newest sample; zero if none
	srtt     time.Duration
	inflight int // after this feedback
	prior    int // before it

	// The delivery rate sample of draft-cheng-iccrg-delivery-rate-estimation: rate is zero if there
	// is none.
	rate           float64
	appLimited     bool
	delivered      uint64 // in all, by now
	priorDelivered uint64 // in all, when the newest acknowledged packet was sent
	limited        bool   // the sender fills its window
}

// controller decides how many bytes may be in flight and how fast they leave. The session calls it
// with its lock held.
type controller interface {
	// onFeedback processes acknowledged and lost packets together.
	onFeedback(f *feedback)
	// onSpurious says that packets declared lost since at had only been late.
	onSpurious(now time.Duration)
	// onPersistent says that nothing got through for several probe timeouts.
	onPersistent(now time.Duration)
	// window returns how many bytes may be in flight.
	window() int
	// rate returns how many bytes leave per second; zero if they are not paced.
	rate() float64
	// setDatagram sets the size of full datagrams.
	setDatagram(size int)
}

func newController(c Congestion, datagram int) controller {
	if c == CUBIC {
		return newCubic(datagram)
	}
	return newBBR(datagram)
}

// initialWindow is that of RFC 9002 §7.2, with the larger first flight of today's paths.
func initialWindow(datagram int) int { return 32 * min(datagram, 1500) }
