package udpbatch

import (
	"net"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"adit/internal/lend"
	"adit/internal/monotime"
)

// lentBatch is how many datagrams a LentReader reads at most at once.
const lentBatch = 16

// LentReader reads a connected socket. It holds no memory while it waits: of many sockets, most are
// silent most of the time. It must not be used concurrently.
type LentReader struct {
	raw  syscall.RawConn
	call func(fd uintptr) bool // made once

	want  int    // datagrams: more of a socket that had as many
	lent  *batch // nil, or what was read
	got   int
	errno syscall.Errno
}

// batch is what one read needs.
type batch struct {
	msgs [lentBatch]mmsghdr
	iovs [lentBatch]unix.Iovec
	bufs [lentBatch][]byte
	list [lentBatch][]byte
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// NewLentReader returns a reader of conn, which still belongs to the caller.
func NewLentReader(conn *net.UDPConn) (*LentReader, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	r := &LentReader{raw: raw, want: 1}
	try := func(fd uintptr) bool {
		r.take()
		n, errno := uintptr(0), syscall.EINTR
		for errno == unix.EINTR {
			n, _, errno = unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&r.lent.msgs[0])),
				uintptr(r.want), unix.MSG_DONTWAIT, 0, 0)
		}
		if r.errno = errno; errno != 0 {
			r.give()
			return errno != unix.EAGAIN
		}
		r.got = int(n)
		return true
	}
	r.call = func(fd uintptr) bool { return try(fd) || process.linger(try, fd, monotime.Now) }
	return r, nil
}

// take takes memory for a read.
func (r *LentReader) take() {
	b := batches.Get().(*batch)
	for i := range r.want {
		b.bufs[i] = lend.TakeLarge()
		b.iovs[i].Base = &b.bufs[i][0]
		b.iovs[i].SetLen(len(b.bufs[i]))
		b.msgs[i] = mmsghdr{hdr: unix.Msghdr{Iov: &b.iovs[i]}}
		b.msgs[i].hdr.SetIovlen(1)
	}
	r.lent = b
}

// Read waits for datagrams. They belong to the caller until Done, which must be called unless there
// was an error.
func (r *LentReader) Read() ([][]byte, error) {
	if err := r.raw.Read(r.call); err != nil {
		return nil, err
	}
	if r.errno != 0 {
		return nil, r.errno
	}
	for i := range r.got {
		r.lent.list[i] = r.lent.bufs[i][:r.lent.msgs[i].n]
	}
	return r.lent.list[:r.got], nil
}

// give gives the memory back.
func (r *LentReader) give() {
	b := r.lent
	for i := range r.want {
		lend.GiveLarge(b.bufs[i])
		b.bufs[i], b.list[i], b.iovs[i] = nil, nil, unix.Iovec{}
	}
	batches.Put(b)
	r.lent = nil
}

// Done releases the memory.
func (r *LentReader) Done() {
	if r.lent == nil {
		return
	}
	r.give()
	switch {
	case r.got == r.want:
		r.want = min(2*r.want, lentBatch)
	case r.got < r.want/2:
		r.want /= 2
	}
}
