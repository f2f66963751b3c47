package udpflow

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/internal/monotime"
	"adit/internal/udpbatch"
)

const patience = 30 * time.Second

// echo is a Way that answers each packet with itself, behind its own name.
type echo struct {
	name   string
	answer func([][]byte)
	sent   chan int // how many packets each Send had; may be nil
	ended  chan string
}

func (e *echo) Send(payloads [][]byte) {
	for _, p := range payloads {
		e.answer([][]byte{slices.Concat([]byte(e.name), p)})
	}
	if e.sent != nil {
		e.sent <- len(payloads)
	}
}

func (e *echo) Run(ctx context.Context) {
	<-ctx.Done()
	e.ended <- e.name
}

// served is a socket that is served by cfg until the test ends.
func served(t *testing.T, cfg Config) (addr string) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := Serve(ctx, conn, cfg); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		serving.Wait()
	})
	return conn.LocalAddr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn
}

func ask(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1<<16)
	n, err := conn.Read(b)
	if err != nil {
		t.Fatalf("asked %q: %v", text, err)
	}
	return string(b[:n])
}

func TestEachSenderHasAWayOfItsOwn(t *testing.T) {
	ended := make(chan string, 2)
	var mu sync.Mutex
	names := []string{"b", "a"}
	var in, out int
	t.Run("served", func(t *testing.T) {
		addr := served(t, Config{
			Open: func(_ context.Context, answer func([][]byte)) (Way, error) {
				mu.Lock()
				defer mu.Unlock()
				name := names[len(names)-1]
				names = names[:len(names)-1]
				return &echo{name: name, answer: answer, ended: ended}, nil
			},
			Passed: func(i, o int) {
				mu.Lock()
				defer mu.Unlock()
				in, out = in+i, out+o
			},
		})
		first, second := dial(t, addr), dial(t, addr)
		for _, c := range []struct {
			conn net.Conn
			want string
		}{{first, "ax"}, {second, "bx"}, {first, "ax"}} {
			if got := ask(t, c.conn, "x"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		}
	})
	if got := []string{<-ended, <-ended}; !slices.Contains(got, "a") || !slices.Contains(got, "b") {
		t.Errorf("the ways %v have ended with the socket, want both", got)
	}
	if in != 3 || out != 6 {
		t.Errorf("counted %d and %d bytes, want 3 and 6", in, out)
	}
}

func TestPacketsWaitForTheirWay(t *testing.T) {
	open := make(chan struct{})
	addr := served(t, Config{Open: func(_ context.Context, answer func([][]byte)) (Way, error) {
		<-open
		return &echo{answer: answer, ended: make(chan string, 1)}, nil
	}})
	conn := dial(t, addr)
	for _, text := range []string{"one", "two"} {
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	close(open)
	for _, want := range []string{"one", "two"} {
		b := make([]byte, 16)
		if n, err := conn.Read(b); err != nil || string(b[:n]) != want {
			t.Errorf("got %q, %v, want %q", b[:n], err, want)
		}
	}
}

func TestAWayThatCannotBeOpenedIsTriedAgain(t *testing.T) {
	var mu sync.Mutex
	tries, left := 0, make(chan struct{}, 1)
	failed := make(chan error, 1)
	addr := served(t, Config{
		Pause: time.Millisecond,
		Open: func(_ context.Context, answer func([][]byte)) (Way, error) {
			mu.Lock()
			defer mu.Unlock()
			if tries++; tries == 1 {
				return nil, errors.New("not yet")
			}
			return &echo{answer: answer, ended: make(chan string, 1)}, nil
		},
		Leave:  func() { left <- struct{}{} },
		Failed: func(err error) { failed <- err },
	})
	conn := dial(t, addr)
	if _, err := conn.Write([]byte("lost")); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err.Error() != "not yet" {
		t.Errorf("told of %v", err)
	}
	<-left
	if got := ask(t, conn, "again"); got != "again" {
		t.Errorf("got %q", got)
	}
}

func TestASilentSenderIsForgotten(t *testing.T) {
	ended := make(chan string, 1)
	addr := served(t, Config{
		Idle: 50 * time.Millisecond,
		Open: func(_ context.Context, answer func([][]byte)) (Way, error) {
			return &echo{name: "x", answer: answer, ended: ended}, nil
		},
	})
	conn := dial(t, addr)
	for range 2 { // the second has a new way
		if got := ask(t, conn, "y"); got != "xy" {
			t.Errorf("got %q", got)
		}
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("the way of a silent sender goes on")
		}
	}
}

// brief is a Way that is over at once.
type brief struct{}

func (brief) Send([][]byte)       {}
func (brief) Run(context.Context) {}

// TestAWayThatIsOverAtOnceIsNotOpenedAgainAtOnce, however many packets come.
func TestAWayThatIsOverAtOnceIsNotOpenedAgainAtOnce(t *testing.T) {
	opened := make(chan struct{}, 1000)
	other := make(chan struct{})
	addr := served(t, Config{
		Pause: time.Hour,
		Open: func(_ context.Context, answer func([][]byte)) (Way, error) {
			select {
			case <-other:
				return &echo{answer: answer, ended: make(chan string, 1)}, nil
			default:
			}
			opened <- struct{}{}
			return brief{}, nil
		},
	})
	conn := dial(t, addr)
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-opened
	close(other)
	second := dial(t, addr)
	for range 200 {
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		ask(t, second, "y") // by then the other was read
	}
	conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 64)); err == nil {
		t.Errorf("another way was opened, and has answered %d bytes", n)
	}
}

// TestWhatComesOfAWayIsTold: one that is over at once has led nowhere, and only who has
// heard something or has stayed for a while was led on.
func TestWhatComesOfAWayIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		way  func(answer func([][]byte)) Way
		want string
	}{
		"over at once":    {func(func([][]byte)) Way { return brief{} }, ErrOver.Error()},
		"it is there":     {func(answer func([][]byte)) Way { return &echo{answer: answer, ended: make(chan string, 1)} }, "opened"},
		"it is silent":    {func(func([][]byte)) Way { return &echo{answer: func([][]byte) {}, ended: make(chan string, 1)} }, "opened"},
		"it answers once": {func(answer func([][]byte)) Way { answer([][]byte{[]byte("bye")}); return brief{} }, "opened"},
	} {
		t.Run(name, func(t *testing.T) {
			told := make(chan string, 9)
			addr := served(t, Config{
				Pause:  50 * time.Millisecond,
				Open:   func(_ context.Context, answer func([][]byte)) (Way, error) { return c.way(answer), nil },
				Opened: func() { told <- "opened" },
				Failed: func(err error) { told <- err.Error() },
			})
			conn := dial(t, addr)
			if _, err := conn.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			select {
			case got := <-told:
				if got != c.want {
					t.Errorf("told of %q, want %q", got, c.want)
				}
			case <-time.After(patience):
				t.Fatal("nothing is told")
			}
			if len(told) > 0 {
				t.Errorf("told of %q, too", <-told)
			}
		})
	}
}

// TestWhoIsSilentMakesRoom for one more sender than there may be, and who is not does not.
func TestWhoIsSilentMakesRoom(t *testing.T) {
	now := int64(monotime.Now())
	for _, c := range []struct {
		used   []int64
		spared int // -1: none
		room   bool
	}{
		{[]int64{now}, -1, true},
		{[]int64{now - int64(3*silent), now - int64(2*silent)}, 0, true},
		{[]int64{now + int64(time.Hour), now - int64(2*silent)}, 1, true},
		{[]int64{now + int64(time.Hour), now + int64(time.Hour)}, -1, false},
	} {
		ss := &senders{cfg: Config{Most: 2}, all: make(map[netip.AddrPort]*sender)}
		var list []*sender
		for i, used := range c.used {
			s := &sender{of: ss, at: udpbatch.AddrFrom(netip.AddrPortFrom(netip.IPv6Loopback(), uint16(i)), netip.Addr{})}
			s.used.Store(used)
			ss.all[s.at.AddrPort] = s
			list = append(list, s)
		}
		spared, room := ss.makeRoom()
		if slices.Index(list, spared) != c.spared || room != c.room {
			t.Errorf("of %v %d makes room, and there is some: %v", c.used, slices.Index(list, spared), room)
		}
		if spared != nil && ss.all[spared.at.AddrPort] != nil {
			t.Error("who makes room is still there")
		}
	}
}

func TestANewSenderTakesTheWayOfASilentOne(t *testing.T) {
	ended := make(chan string, 2)
	left := make(chan struct{}, 1)
	var open atomic.Int64
	addr := served(t, Config{
		Most: 1,
		Open: func(_ context.Context, answer func([][]byte)) (Way, error) {
			return &echo{answer: answer, ended: ended}, nil
		},
		Enter: func() { open.Add(1) },
		Leave: func() {
			open.Add(-1)
			select {
			case left <- struct{}{}:
			default:
			}
		},
	})
	first, second := dial(t, addr), dial(t, addr)
	if got := ask(t, first, "in"); got != "in" {
		t.Errorf("got %q", got)
	}
	for deadline := time.Now().Add(patience); ; {
		if _, err := second.Write([]byte("one more")); err != nil {
			t.Fatal(err)
		}
		second.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, err := second.Read(make([]byte, 64)); err == nil && n == len("one more") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("one more is never heard")
		}
	}
	<-ended // of the first
	<-left
	if n := open.Load(); n != 1 {
		t.Errorf("%d senders are counted", n)
	}
}

func TestFramedPacketsKeepTheirBounds(t *testing.T) {
	a, b := net.Pipe()
	var left, right *Framed
	got := make(chan []byte, 8)
	take := func(payloads [][]byte) {
		for _, p := range payloads {
			got <- bytes.Clone(p)
		}
	}
	left = NewFramed(a, take)
	right = NewFramed(b, func(payloads [][]byte) { right.Send(payloads) })
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running.Go(func() { left.Run(ctx) })
	running.Go(func() { right.Run(ctx) })
	packets := [][]byte{{}, []byte("x"), bytes.Repeat([]byte("long"), 16000), bytes.Repeat([]byte("m"), MaxPayload)}
	left.Send(append(slices.Clone(packets), make([]byte, MaxPayload+1))) // the last is none of UDP
	for _, want := range packets {
		select {
		case p := <-got:
			if !bytes.Equal(p, want) {
				t.Errorf("got %d bytes, want %d", len(p), len(want))
			}
		case <-time.After(patience):
			t.Fatalf("a packet of %d bytes has not come", len(want))
		}
	}
}

func TestFramedEndsWithItsConnection(t *testing.T) {
	a, b := net.Pipe()
	f := NewFramed(a, func([][]byte) {})
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(t.Context())
	}()
	b.Close()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("it goes on without its connection")
	}
	f.Send([][]byte{[]byte("to nobody")})
}

func FuzzFramed(f *testing.F) {
	f.Add([]byte{0, 3, 'a', 'b', 'c', 0, 0})
	f.Add([]byte{0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var out []byte
		r := &Framed{conn: nopCloser{bytes.NewBuffer(bytes.Clone(b))}, answer: func(payloads [][]byte) {
			for _, p := range payloads {
				out = append(append(out, byte(len(p)>>8), byte(len(p))), p...)
			}
		}}
		r.read()
		if !bytes.HasPrefix(b, out) {
			t.Errorf("of %x it has made %x", b, out)
		}
	})
}

type nopCloser struct{ *bytes.Buffer }

func (nopCloser) Close() error { return nil }
