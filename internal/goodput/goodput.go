// Package goodput measures how many bytes per second a path carries, by moving bytes over it for a
// short time.
package goodput

import (
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"time"
)

// What one measurement sends, one way: for Time, and Most bytes.
const (
	Time = 2 * time.Second
	Most = 64 << 20
)

const (
	// settle is left out at the beginning: a sender that has just begun does not
	// know yet what the path takes.
	settle = Time / 4
	// patience is how much longer a receiver reads. What a sender has written may
	// wait in queues that a slow path needs long for.
	patience = Time / 2
	piece    = 64 << 10
)

// noise is what is sent: bytes that nothing on the way can pack.
var noise = sync.OnceValue(func() []byte {
	b := make([]byte, piece)
	_, _ = rand.Read(b) // it never fails
	return b
})

// Source provides the bytes of one measurement. Its time begins with the first read.
func Source() io.Reader { return &source{left: Most} }

type source struct {
	until time.Time
	left  int
}

func (s *source) Read(b []byte) (int, error) {
	now := time.Now()
	if s.until.IsZero() {
		s.until = now.Add(Time)
	}
	if s.left == 0 || now.After(s.until) {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), s.left)], noise())
	s.left -= n
	return n, nil
}

// Receive reads what a Source at the other end of a path sends, until it ends or for as long as one
// lasts, and returns the bytes per second received. If nothing arrives, it returns an error; if the
// path breaks or its deadline passes, it returns the result up to then.
func Receive(r io.Reader) (float64, error) {
	var m meter
	b := make([]byte, piece)
	for {
		n, err := r.Read(b)
		now := time.Now()
		if n > 0 {
			m.add(n, now)
		}
		switch {
		case errors.Is(err, io.EOF) && m.total > 0, err == nil && m.total > 0 && now.Sub(m.first) > Time+patience:
			return m.rate(now), nil
		case errors.Is(err, io.EOF):
			return 0, io.ErrUnexpectedEOF
		case err != nil && m.total > 0 && now.Sub(m.first) > settle:
			return m.rate(now), nil
		case err != nil:
			return 0, err
		}
	}
}

// meter counts what comes.
type meter struct {
	first, settled time.Time
	total, before  int // before: what had come at settled
}

func (m *meter) add(n int, now time.Time) {
	m.total += n
	switch {
	case m.first.IsZero():
		m.first = now
	case m.settled.IsZero() && now.Sub(m.first) >= settle:
		m.settled, m.before = now, m.total
	}
}

// rate is in bytes a second, until now.
func (m *meter) rate(now time.Time) float64 {
	begin, n := m.first, m.total
	if rest := m.total - m.before; !m.settled.IsZero() && rest > 0 && now.Sub(m.settled) >= settle {
		begin, n = m.settled, rest
	}
	return float64(n) / max(now.Sub(begin), time.Millisecond).Seconds()
}
