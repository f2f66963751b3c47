package pump

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/shape"
)

// pipe is a stream by one end of a net.Pipe.
type pipe struct{ net.Conn }

func (p pipe) CloseWrite() error { return p.Close() }
func (p pipe) Reset()            { p.Close() }
func (p pipe) Quiet() bool       { return true }

// TestWhatStandsStillEnds checks that a stalled connection ends, and that one on which a byte
// moves now and then, in either direction, does not.
func TestWhatStandsStillEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = time.Minute
		outside, guest := net.Pipe()
		inside, stream := net.Pipe()
		v := visitor.New(visitor.Config{PerAddress: 1, Most: 1}).AdmitGuest(pipe{guest}, nil, visitor.Guest{Addr: netip.MustParseAddrPort("192.0.2.1:1")})
		var in, out int64
		ended := make(chan error, 1)
		go func() {
			var err error
			in, out, err = Pump(t.Context(), v, pipe{stream}, idle, new(shape.Meter), func() error { return nil })
			ended <- err
		}()
		for i := range 6 {
			time.Sleep(idle * 3 / 4)
			from, to := outside, inside
			if i%2 == 1 {
				from, to = inside, outside
			}
			if _, err := from.Write([]byte("x")); err != nil {
				t.Fatalf("byte %d: %v", i, err)
			}
			if _, err := io.ReadFull(to, make([]byte, 1)); err != nil {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
		last := time.Now()
		err := <-ended
		if took := time.Since(last); !errors.Is(err, errIdle) || took < idle || took > 2*idle || in != 3 || out != 3 {
			t.Errorf("got %v %v after the last byte, %d bytes in and %d out, want %v after %v to %v, 3 and 3", err, took, in, out, errIdle, idle, 2*idle)
		}
		for _, end := range []net.Conn{outside, inside} {
			if _, err := end.Write([]byte("x")); err == nil {
				t.Error("got a connection that is open still, want both ended")
			}
		}
	})
}
