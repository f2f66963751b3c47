package sockio

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// pair returns the two ends of a connection.
func pair(t *testing.T) (*Conn, *Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return Wrap(a).(*Conn), Wrap(b).(*Conn)
}

// inOrder sends a megabyte in writes of so many bytes, and compares what all,
// which reads to the end, brings.
func inOrder(t *testing.T, size int, all func(*Conn) ([]byte, error)) {
	t.Helper()
	a, b := pair(t)
	sent := make([]byte, 1<<20)
	if size == 1 {
		sent = sent[:4*announceEvery]
	}
	for i := range sent {
		sent[i] = byte(i * 7 >> 3)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for rest := sent; len(rest) > 0; {
			n, err := a.Write(rest[:min(size, len(rest))])
			if err != nil {
				t.Errorf("write: %v", err)
				return
			}
			rest = rest[n:]
		}
		if err := a.CloseWrite(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	got, err := all(b)
	if err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if !bytes.Equal(got, sent) {
		t.Errorf("by %d: got %d bytes that differ from the %d sent", size, len(got), len(sent))
	}
}

func TestEveryByteComesInOrder(t *testing.T) {
	for _, size := range []int{1, 100, 64 << 10, most, most + 1} {
		inOrder(t, size, func(c *Conn) (got []byte, err error) {
			for buf := make([]byte, size); ; {
				n, err := c.Read(buf)
				got = append(got, buf[:n]...)
				if err == io.EOF {
					return got, nil
				}
				if err != nil {
					return got, err
				}
			}
		})
	}
}

func TestErrorsAreThoseOfTheNetPackage(t *testing.T) {
	a, b := pair(t)
	_ = a.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := a.Read(make([]byte, 10))
	var op *net.OpError
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &op) || op.Op != "read" || !op.Timeout() {
		t.Errorf("after the deadline: got %v", err)
	}
	_ = b.SetLinger(0)
	b.Close()
	_ = a.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err = a.Read(make([]byte, 10))
	var reset *os.SyscallError
	if !errors.As(err, &reset) || !errors.As(err, &op) || op.Addr == nil {
		t.Errorf("of a broken connection: got %v", err)
	}
	if _, err = a.Write([]byte("x")); err == nil {
		t.Error("a broken connection takes bytes")
	}
	a.Close()
	if _, err = a.Read(make([]byte, 10)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("of a closed connection: got %v", err)
	}
}

func TestCloseEndsAWaitingRead(t *testing.T) {
	a, _ := pair(t)
	done := make(chan error, 1)
	go func() {
		_, err := a.Read(make([]byte, 10))
		done <- err
	}()
	a.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestReadAndWriteAllocateNothing(t *testing.T) {
	a, b := pair(t)
	buf := make([]byte, 100)
	if n := testing.AllocsPerRun(200, func() {
		if _, err := a.Write(buf); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(b, buf); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("got %v allocations", n)
	}
}

func TestTryWriteDoesNotWait(t *testing.T) {
	a, b := pair(t)
	sent := 0
	for range 100_000 {
		n := a.TryWrite(make([]byte, 1000))
		sent += n
		if n == 0 && sent > 0 {
			break
		}
	}
	if n := a.TryWrite(make([]byte, 10<<20)); n > 0 {
		sent += n // the other end made room meanwhile
	}
	a.CloseWrite()
	got, err := io.Copy(io.Discard, b)
	if err != nil || got != int64(sent) {
		t.Errorf("got %d bytes, %v; want %d", got, err, sent)
	}
}

func TestTryReadDoesNotWait(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("everywhere else it finds nothing")
	}
	a, b := pair(t)
	buf := make([]byte, 10)
	if n, err := b.TryRead(buf); n != 0 || err != nil {
		t.Errorf("before anything came: %d bytes, %v", n, err)
	}
	until := func(done func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("it never came")
			}
		}
	}
	a.Write([]byte("abc"))
	until(func() bool {
		n, err := b.TryRead(buf)
		if err != nil || n > 0 && string(buf[:n]) != "abc" {
			t.Fatalf("got %q, %v", buf[:n], err)
		}
		return n > 0
	})
	a.CloseWrite()
	until(func() bool {
		n, err := b.TryRead(buf)
		if n > 0 || err != nil && err != io.EOF {
			t.Fatalf("at the end: %d bytes, %v", n, err)
		}
		return err == io.EOF
	})
	b.SetLinger(0)
	b.Close()
	until(func() bool {
		_, err := a.TryRead(buf)
		return err != nil && err != io.EOF
	})
}
