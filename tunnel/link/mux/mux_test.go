package mux

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/yamux"
	"go.uber.org/goleak"
)

var (
	errSilent = errors.New("silent")
	errReset  = errors.New("reset")
)

func config(client bool) Config {
	return Config{
		Client: client, Timeout: errSilent, Reset: errReset, TooLarge: errors.New("too large"),
		PeerClosed: func(reason string) error { return errors.New("closed by the peer: " + reason) },
	}
}

// tcpPair is a connection with the buffers of a kernel.
func tcpPair(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// TestSpeaksYamux holds the wire format against another implementation of it.
func TestSpeaksYamux(t *testing.T) {
	for _, client := range []bool{true, false} {
		defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
		a, b := tcpPair(t)
		cfg := yamux.DefaultConfig()
		cfg.LogOutput = io.Discard
		ours := New(a, config(client))
		var theirs *yamux.Session
		var err error
		if client {
			theirs, err = yamux.Server(b, cfg)
		} else {
			theirs, err = yamux.Client(b, cfg)
		}
		if err != nil {
			t.Fatal(err)
		}
		if client { // the control stream is one like any other to it
			if _, err := theirs.AcceptStream(); err != nil {
				t.Fatal(err)
			}
		} else if _, err := theirs.OpenStream(); err != nil {
			t.Fatal(err)
		}
		want := bytes.Repeat([]byte("through and back "), 100_000)

		mine, err := ours.OpenStream(within(t))
		if err != nil {
			t.Fatal(err)
		}
		go func() { mine.Write(want); mine.CloseWrite() }()
		peer, err := theirs.AcceptStream()
		if err != nil {
			t.Fatal(err)
		}
		go func() { io.Copy(peer, peer); peer.Close() }()
		if got, err := io.ReadAll(mine); err != nil || !bytes.Equal(got, want) {
			t.Errorf("ours opened: got %d bytes, %v; want %d", len(got), err, len(want))
		}

		peer, err = theirs.OpenStream()
		if err != nil {
			t.Fatal(err)
		}
		mine, err = ours.AcceptStream(within(t))
		if err != nil {
			t.Fatal(err)
		}
		go func() { io.Copy(mine, mine); mine.Close() }()
		go func() { peer.Write(want); peer.Close() }()
		if got, err := io.ReadAll(peer); err != nil || !bytes.Equal(got, want) {
			t.Errorf("theirs opened: got %d bytes, %v; want %d", len(got), err, len(want))
		}
		if rtt, err := theirs.Ping(); err != nil || rtt <= 0 {
			t.Errorf("their ping: %v, %v", rtt, err)
		}
		ours.Close("over")
		theirs.Close()
	}
}

func TestBrokenProtocolEndsTheSession(t *testing.T) {
	frame := func(version, kind uint8, flags uint16, id, length uint32) []byte {
		b := appendHeader(nil, kind, flags, id, length)
		b[0] = version
		return b
	}
	tests := map[string][]byte{
		"unknown version":             frame(1, typeData, 0, 1, 0),
		"unknown type":                frame(0, 9, 0, 0, 0),
		"a number of ours":            frame(0, typeWindow, flagSYN, 2, 0),
		"number zero":                 frame(0, typeWindow, flagSYN, 0, 0),
		"a number twice":              append(frame(0, typeWindow, flagSYN, 3, 0), frame(0, typeWindow, flagSYN, 3, 0)...),
		"beyond the window":           frame(0, typeData, flagSYN, 3, initialWindow+1),
		"beyond any window, unread":   frame(0, typeData, 0, 3, 1<<31),
		"a window beyond all bounds":  frame(0, typeWindow, flagSYN, 3, 1<<31),
		"control beyond its window":   frame(0, typeData, 0, controlID, initialWindow+1),
		"control ended":               frame(0, typeWindow, flagFIN, controlID, 0),
		"control window beyond bound": frame(0, typeWindow, 0, controlID, 1<<31),
	}
	for name, bytes := range tests {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			a, b := tcpPair(t)
			s := New(a, config(false))
			go io.Copy(io.Discard, b)
			b.Write(bytes)
			select {
			case <-s.Done():
			case <-time.After(20 * time.Second):
				t.Fatal("the session goes on")
			}
			if !errors.Is(s.Err(), net.ErrClosed) {
				t.Errorf("got %v, want a match with net.ErrClosed", s.Err())
			}
			b.Close()
			s.Close("")
		})
	}
}

func TestTooManyStreamsAreReset(t *testing.T) {
	a, b := tcpPair(t)
	cfg := config(false)
	cfg.MaxStreams = 2
	s := New(a, cfg)
	defer s.Close("over")
	peer := New(b, config(true))
	defer peer.Close("over")
	for i := range 3 {
		st, err := peer.OpenStream(within(t))
		if err != nil {
			t.Fatal(err)
		}
		st.Write([]byte("x"))
		if i < 2 {
			if _, err := s.AcceptStream(within(t)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		st.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := st.Read(make([]byte, 1)); !errors.Is(err, errReset) {
			t.Errorf("the third stream: got %v, want errReset", err)
		}
	}
}

func TestUnreadBytesAreBounded(t *testing.T) {
	a, b := tcpPair(t)
	cfg := config(false)
	cfg.MaxBuffered = 1 << 20
	s := New(a, cfg)
	defer s.Close("over")
	peer := New(b, config(true))
	defer peer.Close("over")
	var reset atomic.Int32
	var reading sync.WaitGroup
	for range 10 { // each fills its window, and nobody reads
		st, err := peer.OpenStream(within(t))
		if err != nil {
			t.Fatal(err)
		}
		st.SetWriteDeadline(time.Now().Add(20 * time.Second))
		st.Write(make([]byte, initialWindow))
		reading.Go(func() {
			if _, err := st.Read(make([]byte, 1)); errors.Is(err, errReset) {
				reset.Add(1)
			}
		})
	}
	bounded := func() bool { return s.buffered.Load() <= cfg.MaxBuffered && reset.Load() >= 5 }
	for end := time.Now().Add(20 * time.Second); !bounded() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if !bounded() {
		t.Errorf("%d bytes are held and %d of 10 streams were reset; want at most %d bytes", s.buffered.Load(), reset.Load(), cfg.MaxBuffered)
	}
	peer.Close("over")
	reading.Wait()
}

func TestPeerThatReadsNoAnswersLosesItsSession(t *testing.T) {
	a, b := tcpPair(t)
	s := New(a, config(false))
	defer s.Close("over")
	go func() {
		pings := bytes.Repeat(appendHeader(nil, typePing, flagSYN, 0, 7), 1000)
		for {
			if _, err := b.Write(pings); err != nil {
				return
			}
		}
	}()
	select {
	case <-s.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the session goes on")
	}
}

func TestSilentPeerIsNoticed(t *testing.T) {
	for name, write := range map[string]bool{"idle": false, "under traffic": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				defer b.Close()
				s := New(a, config(true))
				go io.Copy(io.Discard, b)
				limit := 20 * time.Second
				start := time.Now()
				if write {
					st, err := s.OpenStream(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					st.Write([]byte("are you there?"))
					limit = 14 * time.Second
				}
				<-s.Done()
				if took := time.Since(start); took > limit || s.Err() != errSilent {
					t.Errorf("ended after %v with %v, want the timeout within %v", took, s.Err(), limit)
				}
				s.Close("")
			})
		})
	}
}

func TestIdleSessionStaysAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		client, server := New(a, config(true)), New(b, config(false))
		time.Sleep(time.Hour)
		for _, s := range []*Session{client, server} {
			st := s.Stats()
			if s.Err() != nil || time.Since(st.LastReceived) > st.KeepAlive {
				t.Errorf("got %v, heard %v ago; want alive and heard within %v", s.Err(), time.Since(st.LastReceived), st.KeepAlive)
			}
		}
		client.Close("over")
		<-server.Done()
		server.Close("")
	})
}

// TestIdleSessionSaysLittle counts what an idle session writes: a ping and its
// answer in an interval, or both ends one now and then.
func TestIdleSessionSaysLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		var writes atomic.Int64
		client, server := New(counted{a, &writes}, config(true)), New(counted{b, &writes}, config(false))
		time.Sleep(time.Minute)
		writes.Store(0)
		time.Sleep(time.Hour)
		if got, most := writes.Load(), int64(3*time.Hour/(6*time.Second)); got > most {
			t.Errorf("got %d writes in an hour, want at most %d", got, most)
		}
		client.Close("over")
		<-server.Done()
		server.Close("")
	})
}

// counted counts the writes of a connection.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

func FuzzFrames(f *testing.F) {
	f.Add(appendHeader(nil, typeWindow, flagSYN, controlID, 0))
	f.Add(append(appendHeader(nil, typeData, flagSYN, 3, 5), "hello"...))
	f.Add(append(appendHeader(nil, typeData, 0, controlID, 7), 1, 0, 4, 'd', 'a', 't', 'a'))
	f.Add(append(appendHeader(nil, typeData, 0, controlID, 6), 2, 0, 3, 'b', 'y', 'e'))
	f.Add(appendHeader(nil, typePing, flagSYN, 0, 1))
	f.Add(appendHeader(nil, typeGoAway, 0, 0, 1))
	f.Fuzz(func(t *testing.T, input []byte) {
		a, b := net.Pipe()
		s := New(a, config(false))
		go io.Copy(io.Discard, b)
		b.SetWriteDeadline(time.Now().Add(5 * time.Second))
		b.Write(input)
		b.Close()
		<-s.Done()
		s.Close("")
		if held := s.buffered.Load(); held > int64(len(input)) {
			t.Errorf("%d bytes are held of %d", held, len(input))
		}
	})
}
