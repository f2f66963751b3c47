package sockio

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"adit/internal/lend"
)

// half is what one direction needs for its calls, made once.
type half struct {
	raw  syscall.RawConn // nil: every call is announced
	call func(fd uintptr) bool
	try  func(fd uintptr) bool // the same, but it does not wait
	none bool                  // try found nothing

	lent   func(fd uintptr) bool // call, into what lender lends
	lender *lend.Buffer

	acks *acks // of what is read; nil: the system's

	mu    sync.Mutex // one call at a time, as the net package has it too
	b     []byte     // the caller's
	n     int
	errno syscall.Errno
	count int // calls since the last that was announced
}

// setUp makes both directions' calls.
func (c *Conn) setUp() {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	c.in.raw, c.out.raw = raw, raw
	c.in.call, c.out.call = c.in.read, c.out.write
	c.in.lent = c.in.readLent
	c.in.try = func(fd uintptr) bool { c.in.none = !c.in.once(syscall.SYS_READ, fd); return true }
	c.out.try = func(fd uintptr) bool { c.out.once(syscall.SYS_WRITE, fd); return true }
}

// read reads once, and reports false if it has to wait.
func (h *half) read(fd uintptr) bool {
	if h.once(syscall.SYS_READ, fd) {
		h.acks.came(h.n)
		return true
	}
	h.acks.wait(fd)
	return false
}

// readLent is read, but takes its memory first, and gives it back to wait.
func (h *half) readLent(fd uintptr) bool {
	h.b = h.lender.Lend()
	var came bool
	if h.begin(len(h.b)) {
		came = h.once(syscall.SYS_READ, fd)
	} else {
		came = h.announced(fd)
	}
	if came {
		h.acks.came(h.n)
		return true
	}
	h.lender.Return()
	h.acks.wait(fd)
	return false
}

// announced reads once as the net package does it.
func (h *half) announced(fd uintptr) bool {
	for {
		n, err := syscall.Read(int(fd), h.b)
		errno, _ := err.(syscall.Errno) //nolint:errorlint // syscall.Read's errors are numbers
		switch errno {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		case 0:
			h.n += n
		}
		h.errno = errno
		return true
	}
}

// write writes all, and reports false if it has to wait.
func (h *half) write(fd uintptr) bool {
	for len(h.b) > 0 {
		if !h.once(syscall.SYS_WRITE, fd) {
			return false
		}
		if h.errno != 0 {
			break
		}
	}
	return true
}

func (h *half) once(call, fd uintptr) bool {
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(&h.b[0])), uintptr(len(h.b)))
		switch errno {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		case 0:
			h.n += int(n)
			h.b = h.b[n:]
		}
		h.errno = errno
		return true
	}
}

// begin reports whether a call of that size is to go unannounced. mu is held.
func (h *half) begin(size int) bool {
	if size == 0 || size > most || h.raw == nil || h.count >= announceEvery {
		h.count = 0
		return false
	}
	h.count++
	return true
}

// Read reads what is available.
func (c *Conn) Read(b []byte) (int, error) {
	h := &c.in
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begin(len(b)) {
		return c.TCPConn.Read(b)
	}
	h.b, h.n, h.errno = b, 0, 0
	err := h.raw.Read(h.call)
	h.b = nil
	if err == nil && h.errno == 0 && h.n == 0 {
		return 0, io.EOF
	}
	return h.n, failure(c, "read", err, h.errno)
}

// ReadLent is like Read into memory that l lends: while it waits, it holds no memory.
func (c *Conn) ReadLent(l *lend.Buffer) (int, error) {
	h := &c.in
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.raw == nil {
		return c.TCPConn.Read(l.Lend())
	}
	h.lender, h.n, h.errno = l, 0, 0
	err := h.raw.Read(h.lent)
	h.lender, h.b = nil, nil
	if err == nil && h.errno == 0 && h.n == 0 {
		return 0, io.EOF
	}
	return h.n, failure(c, "read", err, h.errno)
}

// Write writes all of b.
func (c *Conn) Write(b []byte) (int, error) {
	c.in.acks.wrote()
	h := &c.out
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begin(len(b)) {
		return c.TCPConn.Write(b)
	}
	h.b, h.n, h.errno = b, 0, 0
	err := h.raw.Write(h.call)
	h.b = nil
	return h.n, failure(c, "write", err, h.errno)
}

// TryWrite writes as much of b as possible without waiting, and returns how much. An error shows at
// the next Write.
func (c *Conn) TryWrite(b []byte) int {
	c.in.acks.wrote()
	h := &c.out
	if len(b) == 0 || h.raw == nil || !h.mu.TryLock() {
		return 0
	}
	defer h.mu.Unlock()
	h.b, h.n, h.errno = b[:min(len(b), most)], 0, 0
	_ = h.raw.Write(h.try) // as above
	h.b = nil
	return h.n
}

// TryRead reads what is available without waiting; neither bytes nor an error means that there is
// nothing.
func (c *Conn) TryRead(b []byte) (int, error) {
	h := &c.in
	if len(b) == 0 || h.raw == nil || !h.mu.TryLock() {
		return 0, nil
	}
	defer h.mu.Unlock()
	h.b, h.n, h.errno = b[:min(len(b), most)], 0, 0
	err := h.raw.Read(h.try)
	h.b = nil
	h.acks.came(h.n)
	if err == nil && h.errno == 0 && h.n == 0 && !h.none {
		return 0, io.EOF
	}
	return h.n, failure(c, "read", err, h.errno)
}

// failure is an error as the net package has it, or nil.
func failure(c net.Conn, op string, err error, errno syscall.Errno) error {
	if err == nil && errno == 0 {
		return nil
	}
	var known *net.OpError
	if errors.As(err, &known) {
		known.Op = op
		return known
	}
	if err != nil {
		return err
	}
	return &net.OpError{
		Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(),
		Err: os.NewSyscallError(op, errno),
	}
}
