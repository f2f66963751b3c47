package visits

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/splice"
	"adit/tunnel/link"
)

// somebody is a Dialer whose flows go on until over is closed.
type somebody struct {
	nobody
	flows *Flows
	over  chan struct{}
}

func (s somebody) DialPrivateUDP(_ context.Context, _ string, answer func([][]byte)) (*Flow, error) {
	near, _ := net.Pipe()
	return s.flows.Open(1, pipe{near}, s.over, answer), nil
}

// pipe is a stream over a connection in memory.
type pipe struct{ net.Conn }

func (p pipe) CloseWrite() error { return p.Close() }
func (p pipe) Reset()            { p.Close() }
func (pipe) Quiet() bool         { return true }

// quiet is a session that sends nothing.
type quiet struct{ link.Session }

func (quiet) MaxDatagram() int          { return 1200 }
func (quiet) SendDatagram([]byte) error { return nil }

// TestVisitsLeaveRoomOnTheSession: all of them together have no more streams than leave
// some for what else the agent has to ask the relay.
func TestVisitsLeaveRoomOnTheSession(t *testing.T) {
	over := make(chan struct{})
	flows := NewFlows(quiet{})
	vs := New(slog.New(slog.DiscardHandler), somebody{flows: flows, over: over})
	if err := vs.Visit(t.Context(), "nas/ssh", nil); err == nil || vs.ways.Load() != 0 {
		t.Errorf("a visit that is not let in: %v, and %d are counted", err, vs.ways.Load())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { vs.Run(ctx) })
	defer running.Wait()
	defer cancel()
	reserved, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	addr := reserved.LocalAddr().String()
	reserved.Close()
	if err := vs.Declare([]definition.Visit{{Tunnel: "nas/game", Type: "udp", Listen: addr}}); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sends := func(ok func(Visit) bool) {
		t.Helper()
		visitIs(t, vs, func(v Visit) bool {
			_, _ = conn.Write([]byte("x")) // refused while nobody listens yet
			return ok(v)
		})
	}
	vs.ways.Store(maxWays)
	full := func(err string) bool { return strings.Contains(err, "visits are open") }
	sends(func(v Visit) bool { return full(v.Error) })
	if err := vs.VisitUDP(ctx, "nas/game", nil); err == nil || !full(err.Error()) {
		t.Errorf("one more visit of packets: %v", err)
	}
	if err := vs.Visit(ctx, "nas/ssh", func() (splice.HalfCloser, error) { return nil, nil }); err == nil || !full(err.Error()) {
		t.Errorf("one more visit: %v", err)
	}
	if n := vs.ways.Load(); n != maxWays {
		t.Errorf("%d are counted once they were refused, want %d", n, maxWays)
	}
	vs.ways.Store(0)
	sends(func(v Visit) bool { return v.Error == "" && vs.ways.Load() == 1 && v.Bytes.In > 0 })
	flows.Bring(1, [][]byte{[]byte("answer")})
	visitIs(t, vs, func(v Visit) bool { return v.Bytes.Out == 6 })
	close(over)
	noneIsCounted(t, vs)
}

// noneIsCounted waits until no way is taken.
func noneIsCounted(t *testing.T, vs *Visits) {
	t.Helper()
	for deadline := time.After(30 * time.Second); vs.ways.Load() != 0; {
		select {
		case <-deadline:
			t.Fatalf("%d are counted when none is open", vs.ways.Load())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestVisitsThatAreNotLetInTakeNoRoom sends packets to a tunnel that lets nobody in.
func TestVisitsThatAreNotLetInTakeNoRoom(t *testing.T) {
	vs := closed(t)
	reserved, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("udp", reserved.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reserved.Close()
	if err := vs.Declare([]definition.Visit{{Tunnel: "nas/game", Type: "udp", Listen: conn.RemoteAddr().String()}}); err != nil {
		t.Fatal(err)
	}
	visitIs(t, vs, func(v Visit) bool {
		_, _ = conn.Write([]byte("x")) // refused while nobody listens yet
		return v.Error == "nobody is let in"
	})
	noneIsCounted(t, vs)
}
