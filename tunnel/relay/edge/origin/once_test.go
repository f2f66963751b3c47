package origin

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/link"
)

// noSession opens no stream.
type noSession struct{ link.Session }

func (noSession) OpenStream(context.Context) (link.Stream, error) { return nil, errors.New("no more") }

// TestRequestsThatGoOnceMeetNoClosing checks that a request that cannot be sent again gets no
// stream that the origin may be closing at that moment, as after 2 s without a request. Other
// requests may.
func TestRequestsThatGoOnceMeetNoClosing(t *testing.T) {
	for what, c := range map[string]struct {
		once         bool
		idle         time.Duration
		kept, closed bool
	}{
		"again, soon":       {idle: time.Second / 2, kept: true},
		"again, later":      {idle: 2 * time.Second, kept: true},
		"once, soon":        {once: true, idle: time.Second / 2, kept: true},
		"once, later":       {once: true, idle: 2 * time.Second, closed: true},
		"again, much later": {idle: 5 * time.Second, closed: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := New(Config{Session: noSession{}})
			conn := &open{}
			o.Keep(newStream(&Conn{Stream: conn}, &o.idle))
			time.Sleep(c.idle)
			synctest.Wait()
			s, _ := o.Stream(t.Context(), Want{Once: c.once})
			synctest.Wait()
			if kept := s != nil; kept != c.kept || conn.closed != c.closed {
				t.Errorf("%s: the kept connection is used: %v, closed: %v; want %v, %v", what, kept, conn.closed, c.kept, c.closed)
			}
			if s != nil {
				s.Close()
			}
			o.Close()
		})
	}
}
