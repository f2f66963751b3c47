package sockio

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"adit/internal/lend"
)

func TestLentReadsBringEveryByteInOrder(t *testing.T) {
	for _, size := range []int{1, 100, lend.Small, lend.Large, 300 << 10} {
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
		var got []byte
		var l lend.Buffer
		for {
			part, err := lend.Read(b, &l)
			got = append(got, part...)
			l.Done(len(part))
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
		if !bytes.Equal(got, sent) {
			t.Errorf("by %d: got %d bytes that differ from the %d sent", size, len(got), len(sent))
		}
	}
}

// TestAWaitingReaderHoldsNothing tries what a read does before it waits: with
// little lent, and with much, which is announced.
func TestAWaitingReaderHoldsNothing(t *testing.T) {
	a, b := pair(t)
	for _, size := range []int{lend.Small, lend.Large} {
		var l lend.Buffer
		if size == lend.Large {
			l.Lend()
			l.Done(lend.Small)
		}
		h := &b.in
		h.lender, h.n, h.errno = &l, 0, 0
		if err := h.raw.Control(func(fd uintptr) {
			if h.readLent(fd) {
				t.Errorf("%d: a read of nothing does not wait", size)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if l.Holds() {
			t.Errorf("%d: memory is held", size)
		}
		if _, err := a.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		part, err := lend.Read(b, &l)
		if string(part) != "x" || err != nil {
			t.Errorf("%d: got %q, %v", size, part, err)
		}
		l.Done(len(part))
	}
}

func TestLentReadsEndAsOthersDo(t *testing.T) {
	a, b := pair(t)
	var l lend.Buffer
	_ = a.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := a.ReadLent(&l)
	var op *net.OpError
	if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &op) || op.Op != "read" || !op.Timeout() {
		t.Errorf("after the deadline: got %v", err)
	}
	_ = b.SetLinger(0)
	b.Close()
	_ = a.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err = a.ReadLent(&l)
	var reset *os.SyscallError
	if !errors.As(err, &reset) {
		t.Errorf("of a broken connection: got %v", err)
	}
	l.Return()
	a.Close()
	if _, err = a.ReadLent(&l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("of a closed connection: got %v", err)
	}
	if l.Holds() {
		t.Error("a read that could not begin holds memory")
	}
}
