package goodput

import (
	"errors"
	"io"
	"math"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// path takes rate bytes a second after it has begun at a tenth of that, in pieces
// of 10 ms, as a connection that has just begun.
type path struct {
	from  io.Reader
	rate  int
	begun time.Time
}

func (p *path) Read(b []byte) (int, error) {
	time.Sleep(10 * time.Millisecond)
	if p.begun.IsZero() {
		p.begun = time.Now()
	}
	n := p.rate / 100
	if time.Since(p.begun) < settle/2 {
		n /= 10
	}
	return p.from.Read(b[:min(n, len(b))])
}

func TestRateIsThatOfThePath(t *testing.T) {
	for _, want := range []int{100_000, 6_000_000} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			got, err := Receive(&path{from: Source(), rate: want})
			if err != nil || math.Abs(got-float64(want)) > 0.02*float64(want) {
				t.Errorf("%.0f bytes a second of %d, %v", got, want, err)
			}
			if took := time.Since(begin); took < Time || took > Time+20*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// What a fast path has moved is bounded, and ends sooner.
func TestSourceHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, err := io.Copy(io.Discard, Source())
		if n != Most || err != nil {
			t.Errorf("%d bytes of %d, %v", n, Most, err)
		}
	})
}

// A sender that goes on is not listened to for longer than one lasts.
func TestReceiverHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		got, err := Receive(&path{from: endless{}, rate: 50_000})
		if took := time.Since(begin); err != nil || math.Abs(got-50_000) > 1000 || took > Time+patience+20*time.Millisecond {
			t.Errorf("%.0f bytes a second in %v, %v", got, took, err)
		}
	})
}

// What came before a path broke says how fast it was, if it was long enough.
func TestPathThatBreaks(t *testing.T) {
	broke := errors.New("broke")
	for _, c := range []struct {
		name  string
		bytes int64
		want  float64
		err   error
	}{
		{"before anything came", 0, 0, broke},
		{"too soon", 10_000, 0, broke},
		{"late", 150_000, 100_000, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from := io.MultiReader(io.LimitReader(Source(), c.bytes), iotest.ErrReader(broke))
				got, err := Receive(&path{from: from, rate: 100_000})
				if !errors.Is(err, c.err) || math.Abs(got-c.want) > 0.02*c.want {
					t.Errorf("%.0f bytes a second of %.0f, %v", got, c.want, err)
				}
			})
		})
	}
	if _, err := Receive(iotest.DataErrReader(&io.LimitedReader{})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("nothing at all: %v", err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }
