package sockio

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"adit/internal/lend"
)

func TestLentReadsBringEveryByteInOrder(t *testing.T) {
	for _, size := range []int{1, 100, lend.Small, lend.Large, 300 << 10} {
		inOrder(t, size, func(c *Conn) (got []byte, err error) {
			for l := new(lend.Buffer); ; {
				part, err := lend.Read(c, l)
				got = append(got, part...)
				l.Done(len(part))
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
