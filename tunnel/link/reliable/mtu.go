package reliable

import "time"

const (
	baseDatagram  = 1200
	floorDatagram = 548 // an IPv4 packet of 576 bytes
	// maxDatagram is the largest UDP payload ever tried.
	maxDatagram = 16 << 10
	mtuRetries  = 3
	mtuRaise    = 10 * time.Minute
	// nearRTT is the round-trip time below which a path may have jumbo frames, or be loopback.
	nearRTT = 5 * time.Millisecond
)

// farSizes and nearSizes are the UDP payload sizes to try in turn: a full Ethernet frame over IPv4,
// smaller ones for IPv6, PPPoE and tunnels, and jumbo frames.
var (
	farSizes  = []int{1472, 1452, 1420, 1372, 1280}
	nearSizes = []int{maxDatagram, 8952, 4068}
)

// mtu finds the largest datagram that gets through, by RFC 8899, with probes that contain only
// padding.
type mtu struct {
	size    int // UDP payload in use
	tried   int // index into the sizes
	near    bool
	fails   int
	flying  bool
	probing int
	next    time.Duration // when to probe; zero: not
	big     int           // packets above the base lost in a row
	bigAt   time.Duration // when one above the base was last acknowledged
}

func (m *mtu) restart(now time.Duration, size int) {
	*m = mtu{size: size, next: now + 1}
}

// due returns the size to probe now, or 0.
func (m *mtu) due(s *Session, now time.Duration) int {
	if m.flying || m.next == 0 || now < m.next || !s.rtt.measured || s.ptoCount > 0 {
		return 0
	}
	if m.size < baseDatagram {
		return baseDatagram
	}
	for !m.near && m.tried < len(farSizes) {
		if size := farSizes[m.tried]; size > m.size {
			return size
		}
		m.tried = len(farSizes)
	}
	if !m.near && m.size >= farSizes[0] && s.rtt.min < nearRTT {
		m.near, m.tried = true, 0
	}
	for m.near && m.tried < len(nearSizes) {
		if size := nearSizes[m.tried]; size > m.size {
			return size
		}
		m.tried = len(nearSizes)
	}
	m.next, m.tried, m.near = now+mtuRaise, 0, false
	return 0
}

func (m *mtu) onSent(size int) { m.flying, m.probing = true, size }

func (m *mtu) onAcked(s *Session, now time.Duration, p *sentPacket) {
	if p.probe {
		m.flying, m.fails = false, 0
		if m.probing > m.size {
			s.setDatagram(m.probing)
			m.bigAt = now
		}
		m.next = now + 1
		return
	}
	if int(p.size) > baseDatagram {
		m.big, m.bigAt = 0, now
	}
}

func (m *mtu) onLost(s *Session, p *sentPacket) {
	if p.probe {
		if p.state == packetLost {
			s.packetsLost--
		}
		m.failed(s.now())
		return
	}
	// A black hole: large packets vanish, small ones get through.
	if int(p.size) > baseDatagram {
		if m.big++; m.big >= 8 && m.size > baseDatagram && s.now()-m.bigAt > 3*s.rtt.pto() {
			m.fallBack(s, baseDatagram, s.now())
		}
	}
}

// failed moves on to the next size after several failed probes of this one.
func (m *mtu) failed(now time.Duration) {
	m.flying = false
	m.next = now + 1
	if m.fails++; m.fails < mtuRetries {
		return
	}
	m.fails = 0
	if m.size < baseDatagram {
		m.next = now + time.Minute
		return
	}
	m.tried++
}

// onPTO falls back to sizes that pass nearly everywhere if nothing is heard.
func (m *mtu) onPTO(s *Session, now time.Duration) {
	m.flying = false
	// On a short path, two timeouts can pass while the machine itself is briefly busy.
	waited := now - s.unanswered
	switch {
	case s.ptoCount >= 2 && waited >= 250*time.Millisecond && m.size > baseDatagram:
		m.fallBack(s, baseDatagram, now)
	case s.ptoCount >= 3 && waited >= 700*time.Millisecond && m.size > floorDatagram:
		m.fallBack(s, floorDatagram, now)
	}
}

func (m *mtu) fallBack(s *Session, size int, now time.Duration) {
	s.setDatagram(size)
	m.tried, m.near, m.fails, m.big = 0, false, 0, 0
	m.next = now + 5*time.Second
	if size < baseDatagram {
		m.next = now + time.Second
	}
}

// setDatagram changes the size of full datagrams.
func (s *Session) setDatagram(size int) {
	s.mtu.size = size
	s.payload = s.carrier.MaxPayload(size)
	s.control.setDatagram(size)
}
