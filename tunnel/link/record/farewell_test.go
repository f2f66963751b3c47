package record

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/link/farewell"
)

// mortal is a server that can be killed: what it kept stays, and it says nothing.
type mortal struct {
	t      *testing.T
	net    *memNet
	dir    string
	life   int
	book   *farewell.Book
	server *memSock
	l      *Listener
	served chan error
}

const mortalAddr = "192.0.2.1:4433"

func (m *mortal) file() string { return filepath.Join(m.dir, string(rune('a'+m.life))) }

func (m *mortal) start() {
	m.t.Helper()
	var err error
	if m.book, err = farewell.Open(m.file(), slog.New(slog.DiscardHandler)); err != nil {
		m.t.Fatal(err)
	}
	cfg := serverConfig()
	cfg.Farewells = m.book
	m.server = m.net.listen(mortalAddr)
	if m.l, err = Listen(m.server, cfg); err != nil {
		m.t.Fatal(err)
	}
	m.served = make(chan error, 1)
	go func() { m.served <- m.l.Serve(context.Background()) }()
}

// kill ends the server without a word, and leaves its file to the next one.
func (m *mortal) kill() {
	m.t.Helper()
	time.Sleep(time.Second) // nothing is under way any more, and the file is written
	synctest.Wait()
	left, err := os.ReadFile(m.file())
	if err != nil {
		m.t.Fatal(err)
	}
	m.net.setJudge(func(from, to netip.AddrPort, _ []byte) (bool, time.Duration) { return false, 0 })
	m.end()
	m.net.setJudge(nil)
	m.life++
	if err := os.WriteFile(m.file(), left, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mortal) end() {
	m.t.Helper()
	m.l.Close()
	if err := <-m.served; err != nil {
		m.t.Errorf("Serve: %v", err)
	}
	if err := m.book.Close(); err != nil {
		m.t.Error(err)
	}
}

// dial makes a session that both sides know of.
func (m *mortal) dial(addr string) (c, s *Conn) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := Client(ctx, m.net.listen(addr), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(mortalAddr)), clientConfig())
	if err != nil {
		m.t.Fatal(err)
	}
	receiveAll(c)
	send(m.t, c, "first")
	if s, err = m.l.Accept(ctx); err != nil {
		m.t.Fatal(err)
	}
	receiveAll(s)
	return c, s
}

// mortalBubble runs f with a server in virtual time.
func mortalBubble(t *testing.T, f func(m *mortal)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := &mortal{t: t, net: newMemNet(), dir: dir}
		m.start()
		f(m)
		m.end()
		synctest.Wait()
	})
}

// ends waits for the end of a session by a farewell.
func ends(t *testing.T, c *Conn, within time.Duration) {
	t.Helper()
	begun := time.Now()
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatal("the session goes on")
	}
	if err := c.Err(); !errors.Is(err, ErrForgotten) || !errors.Is(err, net.ErrClosed) {
		t.Errorf("the session's end: %v, want %v", err, ErrForgotten)
	}
	if took := time.Since(begun); took > within {
		t.Errorf("the end took %v, want %v at most", took, within)
	}
}

// TestAKilledServerIsNoticedAtItsReturn: clients that say nothing are told that their
// sessions are gone, and again if that was lost.
func TestAKilledServerIsNoticedAtItsReturn(t *testing.T) {
	for name, test := range map[string]struct {
		lost   time.Duration // after the return
		within time.Duration
	}{
		"at once":   {0, 50 * time.Millisecond},
		"word lost": {500 * time.Millisecond, 1050 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			mortalBubble(t, func(m *mortal) {
				c, _ := m.dial("198.51.100.1:1000")
				other, _ := m.dial("198.51.100.2:1000")
				gone, _ := m.dial("198.51.100.3:1000")
				gone.Close()
				time.Sleep(8 * time.Second)
				m.kill()
				time.Sleep(200 * time.Millisecond)
				begun := time.Now()
				m.net.setJudge(func(_, to netip.AddrPort, p []byte) (bool, time.Duration) {
					if to.Addr() == netip.MustParseAddr("198.51.100.3") {
						t.Error("a session that ended before is told of")
					}
					return time.Since(begun) >= test.lost, 5 * time.Millisecond
				})
				m.start()
				synctest.Wait()
				if n := len(m.l.farewells.order); n != 2 {
					t.Errorf("%d words are left, want 2", n)
				}
				ends(t, c, test.within)
				ends(t, other, 5*time.Millisecond)
				m.net.setJudge(nil)
				again, s := m.dial("198.51.100.1:1000") // at the address of before
				time.Sleep(time.Minute)
				if again.Err() != nil || s.Err() != nil {
					t.Errorf("the session after it ended: %v, %v", again.Err(), s.Err())
				}
				again.Close()
			})
		})
	}
}

// TestAFarewellFindsWhoMoved: a client is told where it was last.
func TestAFarewellFindsWhoMoved(t *testing.T) {
	mortalBubble(t, func(m *mortal) {
		c, s := m.dial("198.51.100.1:1000")
		if err := c.Rebind(m.net.listen("203.0.113.1:2000")); err != nil {
			t.Fatal(err)
		}
		<-s.PathChanged()
		time.Sleep(8 * time.Second)
		m.kill()
		m.start()
		ends(t, c, 50*time.Millisecond)
	})
}

// TestAFarewellAnswersWhoIsHeard: a client whose address has changed, as a NAT may have
// it, is told when it speaks; and none without end.
func TestAFarewellAnswersWhoIsHeard(t *testing.T) {
	mortalBubble(t, func(m *mortal) {
		c, _ := m.dial("198.51.100.1:1000")
		late, _ := m.dial("198.51.100.2:1000")
		m.kill()
		block := netip.MustParseAddr("198.51.100.1")
		deaf := netip.MustParseAddr("198.51.100.2")
		answered := map[netip.Addr]int{}
		m.net.setJudge(func(_, to netip.AddrPort, _ []byte) (bool, time.Duration) {
			answered[to.Addr()]++
			return to.Addr() != block && to.Addr() != deaf, 5 * time.Millisecond
		})
		m.start()
		time.Sleep(5 * time.Second)
		sent := func() int {
			m.net.mu.Lock()
			defer m.net.mu.Unlock()
			return answered[deaf]
		}
		said := sent()
		for range 3 * answers {
			send(t, late, "is there anybody?")
			time.Sleep(100 * time.Millisecond)
		}
		if got := sent() - said; got != answers {
			t.Errorf("%d answers to one session, want %d", got, answers)
		}
		if err := c.Rebind(m.net.listen("203.0.113.1:2000")); err != nil {
			t.Fatal(err)
		}
		ends(t, c, 50*time.Millisecond)
		late.Close()
	})
}

// TestWhoSleptIsTold: a session may have ended while its client could not hear of it.
func TestWhoSleptIsTold(t *testing.T) {
	mortalBubble(t, func(m *mortal) {
		c, s := m.dial("198.51.100.1:1000")
		time.Sleep(lasted)
		m.net.setJudge(func(_, _ netip.AddrPort, _ []byte) (bool, time.Duration) { return false, 0 })
		s.Close() // as for its silence
		time.Sleep(8 * time.Hour)
		m.net.setJudge(nil)
		send(t, c, "good morning")
		ends(t, c, 50*time.Millisecond)
	})
}

// TestFarewellsAreBounded: those of the newest sessions that lasted are kept, and none of
// whom knows of the end.
func TestFarewellsAreBounded(t *testing.T) {
	mortalBubble(t, func(m *mortal) {
		c, s := m.dial("198.51.100.1:1000")
		_, brief := m.dial("198.51.100.2:1000")
		brief.Close()
		time.Sleep(lasted)
		c.Close()
		<-s.Done()
		f := &m.l.farewells
		if word := f.answer(farewell.ID(s.routeKey)); word != nil {
			t.Error("a client that has closed its session is to be told of that")
		}
		if word := f.answer(farewell.ID(brief.routeKey)); word != nil {
			t.Error("a session that did not last has a place")
		}
		id := func(i int) farewell.ID { return farewell.ID{1, byte(i >> 16), byte(i >> 8), byte(i)} }
		for i := range mostFarewells + 10 {
			f.add(id(i), []byte("word"))
			f.add(id(i), []byte("another"))
		}
		for i := range 10 {
			if f.answer(id(i)) != nil {
				t.Errorf("word %d is there, want the newest %d", i, mostFarewells)
			}
			if word := f.answer(id(10 + i)); string(word) != "word" {
				t.Errorf("word %d is %q", 10+i, word)
			}
		}
		if len(f.words) != mostFarewells || len(f.order) != mostFarewells {
			t.Errorf("%d words and %d in order, want %d", len(f.words), len(f.order), mostFarewells)
		}
	})
}

// TestAForgedFarewellEndsNothing: nobody without the file can end a session.
func TestAForgedFarewellEndsNothing(t *testing.T) {
	mortalBubble(t, func(m *mortal) {
		c, s := m.dial("198.51.100.1:1000")
		if len(s.farewell) == 0 || c.farewell != nil {
			t.Fatal("the server's side alone has a farewell")
		}
		for at := range s.farewell {
			forged := bytes.Clone(s.farewell)
			forged[at] ^= 1
			if _, err := m.server.WriteTo(forged, c.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if err := c.Err(); err != nil {
			t.Fatalf("a forged word ended the session: %v", err)
		}
		c.Close()
	})
}

// TestManyFarewellsAreSpread: a relay's agents do not all come back in one moment.
func TestManyFarewellsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "farewells")
		write, err := farewell.Open(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		const many = 1000
		for i := range many {
			to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), 1000)
			write.Keep(farewell.ID{byte(i >> 8), byte(i)}, farewell.Word{To: to, Record: []byte("farewell")})
		}
		if err := write.Close(); err != nil {
			t.Fatal(err)
		}
		m := &mortal{t: t, net: newMemNet(), dir: filepath.Dir(path)}
		if err := os.Rename(path, m.file()); err != nil {
			t.Fatal(err)
		}
		told := map[netip.Addr]int{}
		begun, first := time.Now(), 0
		m.net.setJudge(func(_, to netip.AddrPort, _ []byte) (bool, time.Duration) {
			if told[to.Addr()]++; time.Since(begun) < 500*time.Millisecond {
				first++
			}
			return true, 0
		})
		m.start()
		time.Sleep(10 * time.Second)
		m.end()
		if first < 400 || first > 600 {
			t.Errorf("%d were told within half a second, want some 500", first)
		}
		if len(told) != many {
			t.Errorf("%d were told, want %d", len(told), many)
		}
		for to, n := range told {
			if n != 2 {
				t.Errorf("%v was told %d times, want 2", to, n)
			}
		}
		if info, err := os.Stat(m.file()); err != nil || info.Size() != 0 {
			t.Errorf("the file when all were told: %v, %v", info, err)
		}
	})
}

// astray is a socket whose every datagram goes to one address.
type astray struct {
	*memSock
	to net.Addr
}

func (s astray) WriteTo(p []byte, _ net.Addr) (int, error) { return s.memSock.WriteTo(p, s.to) }

// TestAFarewellIsSaidOnADetour: where UDP does not pass, a client is told on the way
// that it takes instead, which is not closed before it has read that.
func TestAFarewellIsSaidOnADetour(t *testing.T) {
	mortalBubble(t, func(m *mortal) {
		c, _ := m.dial("198.51.100.1:1000")
		m.kill()
		inner := netip.MustParseAddr("192.0.2.9")
		m.net.setJudge(func(from, to netip.AddrPort, _ []byte) (bool, time.Duration) {
			return from.Addr() == inner || to.Addr() == inner, 5 * time.Millisecond
		})
		m.start()
		end := m.net.listen("192.0.2.9:1")
		carried := make(chan error, 1)
		go func() { carried <- m.l.Carry(end, func() { t.Error("a session that is gone has proven itself") }) }()
		if err := c.Detour(astray{m.net.listen("198.51.100.1:2000"), end.LocalAddr()}); err != nil {
			t.Fatal(err)
		}
		ends(t, c, 50*time.Millisecond)
		begun := time.Now()
		if err := <-carried; err != nil || time.Since(begun) > proofTime {
			t.Errorf("the detour ended after %v: %v", time.Since(begun), err)
		}
	})
}
