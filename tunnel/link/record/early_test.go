package record

import (
	"context"
	"encoding/binary"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// stranger begins a handshake with a listener in a bubble, and leaves it at that.
// test gets the server's end of it, and writes to the listener as that stranger.
func stranger(t *testing.T, test func(c *Conn, write func(p []byte))) {
	hello := makeHello(t)
	synctest.Test(t, func(t *testing.T) {
		n := newMemNet()
		l, err := Listen(n.listen("192.0.2.1:4433"), serverConfig())
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- l.Serve(context.Background()) }()
		defer func() {
			l.Close()
			<-served
		}()
		sock := n.listen("198.51.100.1:1000")
		write := func(p []byte) {
			t.Helper()
			if _, err := sock.WriteTo(p, l.Addr()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		write(hello)
		answer := make([]byte, 2000)
		size, _, err := sock.ReadFrom(answer)
		if err != nil {
			t.Fatal(err)
		}
		write(withCookie(hello, answer[:size]))
		time.Sleep(10 * time.Millisecond)
		l.mu.RLock()
		c := l.byAddr[sock.addr]
		l.mu.RUnlock()
		if c == nil {
			t.Fatal("no handshake is under way")
		}
		test(c, write)
		if c.ready.Load() || c.Err() != nil {
			t.Errorf("the handshake is not under way any more: %v", c.Err())
		}
	})
}

// plainRecord is a record of size bytes that nobody has sealed.
func plainRecord(typ byte, epoch byte, size int) []byte {
	p := make([]byte, size)
	copy(p, []byte{typ, 0xfe, 0xfd, 0, epoch, 1})
	binary.BigEndian.PutUint16(p[11:], uint16(size-headerSize))
	return p
}

// TestStrangersRecordsAreHardlyKept: who has begun a handshake, and sends what
// could be of the session, has little of it held until there are keys.
func TestStrangersRecordsAreHardlyKept(t *testing.T) {
	stranger(t, func(c *Conn, write func(p []byte)) {
		p := plainRecord(typeApplication, 1, smallBuffer+1) // just too large for a small buffer
		for range 1000 {
			write(p)
		}
		time.Sleep(100 * time.Millisecond)
		held := 0
		for len(c.queue) > 0 {
			held += len((<-c.queue).buf)
		}
		if held > 256<<10 || held == 0 {
			t.Errorf("%d KiB are held for a stranger, want some and 256 KiB at most", held>>10)
		}
	})
}

// TestStrangersHandshakesAreHardlyKept: nor has who sends parts of messages that
// never become whole.
func TestStrangersHandshakesAreHardlyKept(t *testing.T) {
	const size = 4 << 10
	stranger(t, func(c *Conn, write func(p []byte)) {
		heap := func() int64 {
			runtime.GC()
			runtime.GC() // what pools hold, too
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		for i := range 400 {
			p := plainRecord(typeHandshake, 0, size)
			// A part of the last message that a client has, and far from its beginning.
			binary.BigEndian.PutUint16(p[9:], uint16(i))
			at := 1 + i*(size-helloHeader)
			copy(p[headerSize:], []byte{15, 0xff, 0xff, 0xff, 0, 9, byte(at >> 16), byte(at >> 8), byte(at), 0, (size - helloHeader) >> 8, (size - helloHeader) & 0xff})
			write(p)
		}
		time.Sleep(100 * time.Millisecond)
		if grown := heap() - before; grown > 768<<10 {
			t.Errorf("%d KiB are held of 1,600 that a stranger sent", grown>>10)
		}
	})
}
