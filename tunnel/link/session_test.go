package link

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// pair is both ends of one session.
type pair struct {
	client, server Session
	// cut makes the path between them swallow everything. Without one, what
	// needs it is skipped.
	cut func()
	// close ends what lies below.
	close func()
}

// inRealTime runs a test as it is; synctest.Test is the other way.
func inRealTime(t *testing.T, f func(*testing.T)) { f(t) }

// testSession runs what every transport must do, each by means of in. dialPair
// makes a session and its ends, which end with the test.
func testSession(t *testing.T, in func(*testing.T, func(*testing.T)), dialPair func(t *testing.T) pair) {
	tests := []struct {
		name string
		run  func(t *testing.T, p pair)
	}{
		{"echo both ways", testEcho},
		{"close write leaves the other direction", testHalfClose},
		{"close delivers what was written", testCloseDelivers},
		{"reset fails the peer", testReset},
		{"a read of nothing tells of a reset", testReadNothing},
		{"close tells the peer's writes", testCloseStopsPeer},
		{"close frees a blocked writer", testCloseFreesBlockedWriter},
		{"a slow reader stops nobody", testSlowReader},
		{"many streams", testManyStreams},
		{"a big transfer is whole", testBulk},
		{"datagrams", testDatagrams},
		{"datagrams beside bulk", testDatagramsBesideBulk},
		{"torture", testTorture},
		{"close gives the reason", testCloseReason},
		{"a dead peer is noticed", testPeerDeath},
		{"deadlines", testDeadlines},
		{"contexts end waiting", testContexts},
		{"the end fails streams", testEndFailsStreams},
		{"statistics", testStats},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			in(t, func(t *testing.T) {
				p := dialPair(t)
				defer p.close()
				defer p.server.Close("test over")
				defer p.client.Close("test over")
				test.run(t, p)
			})
		})
	}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// within fails the test if f does not return in time.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: still waiting after %v", what, patience)
	}
}

// connect opens a stream from one session to the other; hello is its first byte.
func connect(t *testing.T, from, to Session) (Stream, Stream) {
	t.Helper()
	ctx := testContext(t)
	a, err := from.OpenStream(ctx)
	if err != nil {
		t.Fatalf("open a stream: %v", err)
	}
	if _, err := a.Write([]byte{'!'}); err != nil {
		t.Fatalf("write the first byte: %v", err)
	}
	b, err := to.AcceptStream(ctx)
	if err != nil {
		t.Fatalf("accept a stream: %v", err)
	}
	var hello [1]byte
	if _, err := io.ReadFull(b, hello[:]); err != nil || hello[0] != '!' {
		t.Fatalf("read the first byte: got %q, %v", hello, err)
	}
	return a, b
}

func testEcho(t *testing.T, p pair) {
	for _, way := range []struct{ from, to Session }{{p.client, p.server}, {p.server, p.client}} {
		a, b := connect(t, way.from, way.to)
		within(t, "echo", func() {
			go func() { io.Copy(b, b); b.CloseWrite() }()
			want := randomBytes(300_000)
			go func() { a.Write(want); a.CloseWrite() }()
			got, err := io.ReadAll(a)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, %v; want %d, equal", len(got), err, len(want))
			}
		})
		a.Close()
		b.Close()
	}
}

func testHalfClose(t *testing.T, p pair) {
	a, b := connect(t, p.client, p.server)
	within(t, "half-close", func() {
		a.Write([]byte("request"))
		if err := a.CloseWrite(); err != nil {
			t.Errorf("close the sending direction: %v", err)
		}
		got, err := io.ReadAll(b)
		if string(got) != "request" || err != nil {
			t.Errorf("got %q, %v; want the request and its end", got, err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after CloseWrite: got %v, want net.ErrClosed", err)
		}
		b.Write([]byte("answer"))
		b.Close()
		if got, err = io.ReadAll(a); string(got) != "answer" || err != nil {
			t.Errorf("got %q, %v; want the answer and its end", got, err)
		}
		if err := a.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func testCloseDelivers(t *testing.T, p pair) {
	a, b := connect(t, p.client, p.server)
	want := randomBytes(200_000)
	within(t, "delivery", func() {
		a.Write(want)
		a.Close()
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %d bytes, %v; want %d", len(got), err, len(want))
		}
	})
}

func testReset(t *testing.T, p pair) {
	a, b := connect(t, p.server, p.client)
	within(t, "reset", func() {
		a.Reset()
		if _, err := b.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("read of a reset stream: got %v, want an error that is not EOF", err)
		}
		if err := writeUntilError(b); err == nil {
			t.Error("writes to a reset stream succeed")
		}
		if _, err := a.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("read after own reset: got %v, want an error", err)
		}
	})
}

// testReadNothing: agents ask so whether a visitor is there still, of whom they have read
// nothing yet.
func testReadNothing(t *testing.T, p pair) {
	a, b := connect(t, p.server, p.client)
	within(t, "reads of nothing", func() {
		if n, err := b.Read(nil); n != 0 || err != nil {
			t.Errorf("before anything has come: got %d, %v", n, err)
		}
		if _, err := a.Write([]byte("hello")); err != nil {
			t.Error(err)
		}
		var first [1]byte
		if _, err := io.ReadFull(b, first[:]); err != nil {
			t.Error(err)
		}
		if n, err := b.Read(nil); n != 0 || err != nil {
			t.Errorf("before the rest is read: got %d, %v", n, err)
		}
		a.Reset()
		var err error
		for end := time.Now().Add(patience / 2); err == nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
			_, err = b.Read(nil)
		}
		if err == nil || err == io.EOF {
			t.Errorf("when it is reset: got %v, want an error that is not EOF", err)
		}
	})
}

// writeUntilError writes until that fails, which it must once the peer has spoken.
func writeUntilError(s Stream) error {
	deadline := time.Now().Add(patience / 2)
	s.SetWriteDeadline(deadline)
	for time.Now().Before(deadline) {
		if _, err := s.Write(make([]byte, 1024)); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return nil
			}
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func testCloseStopsPeer(t *testing.T, p pair) {
	a, b := connect(t, p.client, p.server)
	within(t, "close", func() {
		a.Close()
		if _, err := io.ReadAll(b); err != nil {
			t.Errorf("read to the end: %v", err)
		}
		if err := writeUntilError(b); err == nil {
			t.Error("the peer of a closed stream goes on writing")
		}
	})
}

// testCloseFreesBlockedWriter closes a stream whose peer's writes wait, because
// nothing of them was read.
func testCloseFreesBlockedWriter(t *testing.T, p pair) {
	a, b := connect(t, p.client, p.server)
	failed := make(chan error, 1)
	go func() {
		block := make([]byte, 256<<10)
		for {
			if _, err := b.Write(block); err != nil {
				failed <- err
				return
			}
		}
	}()
	select { // until the windows are full
	case err := <-failed:
		t.Fatalf("write: %v", err)
	case <-time.After(time.Second):
	}
	within(t, "the blocked write", func() {
		a.Close()
		if err := <-failed; errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v, want a failure of the stream alone", err)
		}
	})
}

func testSlowReader(t *testing.T, p pair) {
	stuck, unread := connect(t, p.client, p.server)
	defer unread.Reset()
	go func() { // more than any window holds, and nobody reads
		block := make([]byte, 64<<10)
		for {
			if _, err := stuck.Write(block); err != nil {
				return
			}
		}
	}()
	a, b := connect(t, p.client, p.server)
	within(t, "the other stream", func() {
		want := randomBytes(4 << 20)
		go func() { a.Write(want); a.Close() }()
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %d bytes, %v; want %d", len(got), err, len(want))
		}
	})
	stuck.Reset()
}

func testManyStreams(t *testing.T, p pair) {
	const count = 500
	ctx := testContext(t)
	var group sync.WaitGroup
	group.Go(func() {
		for range count {
			s, err := p.server.AcceptStream(ctx)
			if err != nil {
				t.Errorf("accept: %v", err)
				return
			}
			group.Go(func() { io.Copy(s, s); s.Close() })
		}
	})
	for i := range count {
		group.Go(func() {
			s, err := p.client.OpenStream(ctx)
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			defer s.Close()
			s.SetDeadline(time.Now().Add(patience))
			want := bytes.Repeat(fmt.Appendf(nil, "stream %d ", i), 100)
			s.Write(want)
			s.CloseWrite()
			got, err := io.ReadAll(s)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("stream %d: got %d bytes, %v; want %d", i, len(got), err, len(want))
			}
		})
	}
	within(t, "all streams", group.Wait)
}

func testBulk(t *testing.T, p pair) {
	size := 32 << 20
	switch {
	case testing.Short():
		size = 4 << 20
	case slowed:
		size = 8 << 20
	}
	for _, way := range []struct{ from, to Session }{{p.client, p.server}, {p.server, p.client}} {
		a, b := connect(t, way.from, way.to)
		within(t, "the transfer", func() {
			sent, received := sha256.New(), sha256.New()
			var writer sync.WaitGroup
			writer.Go(func() {
				source := rand.NewChaCha8([32]byte{1})
				io.CopyBuffer(io.MultiWriter(onlyWriter{a}, sent), io.LimitReader(source, int64(size)), make([]byte, 70_001))
				a.CloseWrite()
			})
			n, err := io.Copy(received, onlyReader{b})
			writer.Wait()
			if err != nil || n != int64(size) || !bytes.Equal(sent.Sum(nil), received.Sum(nil)) {
				t.Errorf("got %d bytes, %v; want %d and the same sum", n, err, size)
			}
		})
		a.Close()
		b.Close()
	}
}

// onlyWriter and onlyReader hide what else a stream can.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

func testDatagrams(t *testing.T, p pair) {
	ctx := testContext(t)
	if err := p.client.SendDatagram(make([]byte, p.client.MaxDatagram()+1)); !errors.Is(err, ErrDatagramTooLarge) {
		t.Errorf("above MaxDatagram: got %v, want ErrDatagramTooLarge", err)
	}
	for _, way := range []struct{ from, to Session }{{p.client, p.server}, {p.server, p.client}} {
		for _, size := range []int{1, 0, 1000, way.from.MaxDatagram()} {
			want := randomBytes(size)
			buf := make([]byte, 65535)
			// Nothing promises that one arrives, so it is sent until one does.
			got := -1
			for try := 0; try < 20 && got != size; try++ {
				if err := way.from.SendDatagram(want); err != nil {
					t.Fatalf("send %d bytes: %v", size, err)
				}
				short, cancel := context.WithTimeout(ctx, time.Second)
				n, err := way.to.ReceiveDatagram(short, buf)
				cancel()
				if err == nil {
					got = n
				}
			}
			if got != size || !bytes.Equal(buf[:size], want) {
				t.Errorf("got %d bytes; want %d, equal", got, size)
			}
		}
	}
}

func testDatagramsBesideBulk(t *testing.T, p pair) {
	a, b := connect(t, p.client, p.server)
	go io.Copy(io.Discard, b)
	go func() {
		block := make([]byte, 64<<10)
		for {
			if _, err := a.Write(block); err != nil {
				return
			}
		}
	}()
	ctx := testContext(t)
	arrived := make(chan struct{})
	go func() {
		defer close(arrived)
		p.server.ReceiveDatagram(ctx, make([]byte, 65535))
	}()
	for {
		if err := p.client.SendDatagram([]byte("now")); err != nil {
			t.Fatalf("send: %v", err)
		}
		select {
		case <-arrived:
			a.Reset()
			b.Reset()
			return
		case <-ctx.Done():
			t.Fatal("no datagram got through beside a bulk transfer")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}
