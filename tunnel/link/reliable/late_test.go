package reliable

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/simnet"
)

// slow is a carrier whose Send returns later than its packets arrive.
type slow struct {
	*plain
	wait atomic.Int64
}

func (c *slow) Send(packets [][]byte) (uint64, error) {
	first, err := c.plain.Send(packets)
	time.Sleep(time.Duration(c.wait.Load()))
	return first, err
}

// TestAnAcknowledgementMayComeBeforeSendReturns, as on a busy machine and a short path:
// it counts when Send has returned, and the round trip is measured to when it came.
func TestAnAcknowledgementMayComeBeforeSendReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := simnet.New(1)
		there, back := network.Pair(near)
		network.Join("10.0.0.1", "10.0.0.2", there, back)
		connA, _ := network.Listen("10.0.0.1:1000")
		connB, _ := network.Listen("10.0.0.2:2000")
		carrier := &slow{plain: newPlain(connA, "10.0.0.2:2000")}
		a, b := New(carrier, Config{Initiator: true}), New(newPlain(connB, "10.0.0.1:1000"), Config{})
		st, _ := pair(t, a, b)
		time.Sleep(5 * time.Second)                  // what both do at first is over
		carrier.setSteal(func() uint64 { return 1 }) // what is behind a gap is acknowledged at once
		carrier.wait.Store(int64(15 * time.Millisecond))
		for range 20 {
			if _, err := st.Write([]byte("small")); err != nil {
				t.Fatal(err)
			}
			if got := a.Stats().InFlight; got != 0 {
				t.Fatalf("%d bytes count as in flight that are acknowledged", got)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if got, most := a.Stats().RTT, 10*time.Millisecond+maxAckDelay/2; got > most {
			t.Errorf("the round trip is said to be %v, want %v at most", got, most)
		}
		carrier.wait.Store(0)
		a.Close("test over")
		b.Close("test over")
		network.Close()
		synctest.Wait()
	})
}
