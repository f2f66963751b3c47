package reliable

import (
	"math/rand/v2"
	"testing"
	"time"

	"adit/internal/simnet"
)

// flown is a session that has so many packets in flight, without a carrier.
func flown(packets int) *Session {
	s := &Session{
		streams: make(map[uint64]*Stream), sleeping: true, wakes: make(chan struct{}, 1),
		threshold: packetThreshold, control: newController(BBR, baseDatagram),
	}
	s.mtu.size = baseDatagram
	s.rtt.update(100*time.Millisecond, 0)
	s.fly(time.Second, packets)
	return s
}

// fly sends so many more packets.
func (s *Session) fly(now time.Duration, packets int) {
	s.sent.reserve(s.sent.next, packets)
	for range packets {
		p := s.sent.at(s.sent.next)
		p.clear()
		p.state, p.sent, p.size = packetInFlight, now, baseDatagram
		p.delivered, p.deliveredAt, p.firstSent = s.delivered, now, now
		s.inFlight += baseDatagram
		s.sent.next++
	}
}

// farAcks are a hostile peer's: one packet each, from the newest on.
func farAcks(packets int, ack func(now time.Duration, ranges []span)) {
	now := 1100 * time.Millisecond
	for n := packets - 1; n >= 0; n-- {
		now += time.Microsecond
		ack(now, []span{{uint64(n), uint64(n)}})
	}
}

// wideAcks are of an honest peer whose packets are in flight in numbers, and which
// has not got the first: each tells all that came behind it.
func wideAcks(acks int, ack func(now time.Duration, ranges []span)) {
	for i := range acks {
		ack(1100*time.Millisecond+time.Duration(i)*10*time.Microsecond, []span{{1, uint64(10 * (i + 1))}})
	}
}

// shiftedAcks are a hostile peer's: all that it has, from another packet on each time.
func shiftedAcks(packets int, ack func(now time.Duration, ranges []span)) {
	now := 1100 * time.Millisecond
	for n := packets - 1; n > 1; n-- {
		ack(now, []span{{1, uint64(n)}})
	}
}

// TestAcknowledgementsCostLittle: also with as many packets in flight as may be. On a
// machine that does nothing else each takes some microseconds at most.
func TestAcknowledgementsCostLittle(t *testing.T) {
	for name, acks := range map[string]func(ack func(time.Duration, []span)){
		"one packet each, the newest first": func(ack func(time.Duration, []span)) { farAcks(maxTracked, ack) },
		"all behind a loss":                 func(ack func(time.Duration, []span)) { wideAcks(maxTracked/10, ack) },
		"all, and again with one less":      func(ack func(time.Duration, []span)) { shiftedAcks(maxTracked, ack) },
	} {
		t.Run(name, func(t *testing.T) {
			s := flown(maxTracked)
			n, began, budget := 0, time.Now(), 150*time.Microsecond
			if slowed {
				budget *= 10
			}
			acks(func(now time.Duration, ranges []span) {
				s.applyAck(now, ranges, 0)
				n++
			})
			if took := time.Since(began); took > time.Duration(n)*budget {
				t.Errorf("%d acknowledgements took %v", n, took)
			}
		})
	}
}

// TestTheLogKnowsWhatIsAbsent: while packets are lost, come late and have other
// numbers than they were given, nothing in flight is passed over.
func TestTheLogKnowsWhatIsAbsent(t *testing.T) {
	path := simnet.Path{Delay: 20 * time.Millisecond, Rate: 2_000_000, Loss: 0.03, Reorder: 0.03}
	inBubble(t, path, Config{}, func(w *world) {
		random := rand.New(rand.NewPCG(1, 2))
		w.carA.setSteal(func() uint64 { return uint64(max(0, random.IntN(400)-300)) })
		done := make(chan struct{})
		go func() {
			defer close(done)
			transfer(t, w.a, w.b, 4<<20)
		}()
		for {
			select {
			case <-done:
				return
			case <-time.After(3 * time.Millisecond):
			}
			w.a.mu.Lock()
			l := &w.a.sent
			run := uint64(0) // of absent packets
			for n := l.base; n < l.next; n++ {
				p := l.at(n)
				if run++; p.state != packetAbsent {
					run = 0
				}
				if p.state == packetInFlight && n < l.judged {
					t.Errorf("packet %d is in flight, and all before %d were judged", n, l.judged)
				}
				if run > 0 && min(uint64(p.skip), n-l.base) >= run {
					t.Errorf("with packet %d are %d before it passed over, of which %d are absent", n, p.skip, run-1)
				}
			}
			w.a.mu.Unlock()
		}
	})
}

func BenchmarkAcks(b *testing.B) {
	b.Run("far", func(b *testing.B) {
		for i := 0; i < b.N; {
			b.StopTimer()
			s := flown(maxTracked)
			b.StartTimer()
			farAcks(maxTracked, func(now time.Duration, ranges []span) {
				if i++; i <= b.N {
					s.applyAck(now, ranges, 0)
				}
			})
		}
	})
	// A long fat path: 20,000 packets in flight, ten acknowledged at a time, one in
	// a thousand lost.
	b.Run("lossy", func(b *testing.B) {
		const flight, every, rtt = 20_000, 1000, 100 * time.Millisecond
		s := flown(flight)
		now, newest := time.Second+rtt, uint64(0)
		var got received
		var ranges []span
		for i := range b.N {
			now += rtt * 10 / flight
			for range 10 {
				if newest++; newest%every != 0 {
					got.add(newest)
				}
			}
			ranges = got.ranges(ranges[:0])
			s.applyAck(now, ranges, 0)
			s.fly(now, 10)
			if i%(flight/10) == 0 && len(got.set) > 1 { // a round trip ago, and no more told
				got.forget(newest - flight)
			}
		}
	})
}
