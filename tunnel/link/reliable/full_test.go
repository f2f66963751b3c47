package reliable

import (
	"testing"
	"time"

	"adit/internal/simnet"
)

// fillLog lets s have as many packets in flight as it may, none of which arrives.
func (w *world) fillLog(s *Session, c *plain) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaitSent()
	now := s.now()
	for len(s.sent.entries) < maxTracked {
		s.sent.grow()
	}
	for first := c.next.Load(); s.sent.next < first+maxTracked && s.sent.room(s.sent.next, 1); {
		p := s.sent.at(s.sent.next)
		p.clear()
		p.state, p.sent, p.size = packetInFlight, now, 60
		p.delivered, p.deliveredAt, p.firstSent = s.delivered, now, now
		s.inFlight += 60
		s.sent.next++
	}
	c.next.Store(s.sent.next)
	s.lastEliciting, s.unanswered = now, now
}

// TestAnOutageWithAFullLogIsSurvived: as many packets as may be in flight are lost,
// of both sides. Probes and acknowledgements have to leave nonetheless, or no side
// ever learns of it.
func TestAnOutageWithAFullLogIsSurvived(t *testing.T) {
	for name, both := range map[string]bool{"one side": false, "both sides": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, Config{}, func(w *world) {
				transfer(t, w.a, w.b, 100_000)
				w.fillLog(w.a, w.carA)
				if both {
					w.fillLog(w.b, w.carB)
				}
				if took := transfer(t, w.a, w.b, 100_000); took > 2*time.Second {
					t.Errorf("it went on after %v", took)
				}
				transfer(t, w.b, w.a, 100_000)
			})
		})
	}
}
