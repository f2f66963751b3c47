package record

import (
	"errors"
	"testing"
	"time"
)

// TestKeysThatAreUsedUpSealNoMore: a session whose owner did not renew it in time ends,
// before its keys seal or are tried by more records than they are safe for.
func TestKeysThatAreUsedUpSealNoMore(t *testing.T) {
	t.Run("sealed", func(t *testing.T) {
		bubble(t, nil, func(_ *memNet, c, _ *Conn, _, atS *inbox) {
			have := len(atS.wait(t, 1))
			c.sent.Store(maxSent - 2)
			send(t, c, "the last but one", "the last")
			atS.wait(t, have+2)
			if _, err := c.Send([][]byte{packet(c, "one more")}); !errors.Is(err, ErrExhausted) || !errors.Is(c.Err(), ErrExhausted) {
				t.Errorf("got error %v, and the session %v, want that it is used up", err, c.Err())
			}
			if got := c.NextNumber(); got != maxSent {
				t.Errorf("%d records count as sealed, want %d", got, uint64(maxSent))
			}
		})
	})
	t.Run("forged", func(t *testing.T) {
		bubble(t, nil, func(_ *memNet, c, s *Conn, _, atS *inbox) {
			have := len(atS.wait(t, 1))
			s.opening.Lock()
			s.forged = maxForged - 2
			s.opening.Unlock()
			forge := func() {
				p := packet(c, "forged")
				if _, err := c.seal([][]byte{p}, typeApplication); err != nil {
					t.Fatal(err)
				}
				p[len(p)-1] ^= 1
				if err := c.write([][]byte{p}, c.at.Load()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			forge()
			send(t, c, "among them")
			atS.wait(t, have+1)
			forge()
			if err := atS.end(t); !errors.Is(err, ErrExhausted) {
				t.Errorf("the session ended by %v, want that it is used up", err)
			}
		})
	})
}
