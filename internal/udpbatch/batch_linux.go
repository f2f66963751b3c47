package udpbatch

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	maxMessages = 64    // messages a system call
	maxSegments = 64    // UDP_MAX_SEGMENTS of older kernels
	maxGSOBytes = 65000 // below the largest IPv4 datagram, headers off
	controlSize = 64
)

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// fastIO moves many datagrams a system call.
type fastIO struct {
	raw       syscall.RawConn
	v6        bool
	connected bool
	gso       atomic.Bool
	gro       bool
	writers   sync.Pool

	// The reader's, of which there is one.
	in struct {
		msgs    [8 * 4]mmsghdr
		iovs    [8 * 4]unix.Iovec
		names   [8 * 4]unix.RawSockaddrInet6
		control [8 * 4][controlSize]byte
		want    int
		got     int
		errno   syscall.Errno
		call    func(fd uintptr) bool
	}
}

func newFastIO(raw syscall.RawConn, udp *net.UDPConn, offload bool) *fastIO {
	f := &fastIO{raw: raw, connected: udp.RemoteAddr() != nil}
	err := raw.Control(func(fd uintptr) {
		domain, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN)
		f.v6 = err == nil && domain == unix.AF_INET6
		if !offload {
			return
		}
		if _, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT); err == nil {
			f.gso.Store(true)
		}
		f.gro = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
	})
	if err != nil {
		return nil
	}
	f.writers.New = func() any { return newWriter() }
	f.in.call = func(fd uintptr) bool {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&f.in.msgs[0])),
			uintptr(f.in.want), unix.MSG_DONTWAIT, 0, 0)
		f.in.errno = errno
		f.in.got = int(n)
		return errno != unix.EAGAIN && errno != unix.EINTR
	}
	return f
}

func (f *fastIO) read(bufs []Buffer) (int, error) {
	in := &f.in
	in.want = min(len(bufs), len(in.msgs))
	for i := range in.want {
		in.iovs[i].Base = &bufs[i].B[0]
		in.iovs[i].SetLen(len(bufs[i].B))
		h := &in.msgs[i].hdr
		*h = unix.Msghdr{Iov: &in.iovs[i], Name: (*byte)(unsafe.Pointer(&in.names[i])), Namelen: unix.SizeofSockaddrInet6}
		h.SetIovlen(1)
		if f.gro {
			h.Control = &in.control[i][0]
			h.SetControllen(controlSize)
		}
	}
	if err := f.raw.Read(in.call); err != nil {
		return 0, err
	}
	if in.errno != 0 {
		return 0, in.errno
	}
	for i := range in.got {
		b := &bufs[i]
		b.N = int(in.msgs[i].n)
		b.Segment = b.N
		if f.gro {
			if s := segmentSize(in.control[i][:in.msgs[i].hdr.Controllen]); s > 0 && s < b.N {
				b.Segment = s
			}
		}
		b.Addr = Addr{AddrPort: addrOfSockaddr(&in.names[i])}
	}
	return in.got, nil
}

// segmentSize finds the size of the datagrams that GRO joined; zero if it did not.
func segmentSize(control []byte) int {
	for len(control) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		size := int(h.Len)
		if size < unix.SizeofCmsghdr || size > len(control) {
			return 0
		}
		if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && size >= unix.CmsgLen(2) {
			return int(binary.NativeEndian.Uint16(control[unix.CmsgLen(0):]))
		}
		control = control[min(unix.CmsgSpace(size-unix.CmsgLen(0)), len(control)):]
	}
	return 0
}

func addrOfSockaddr(sa *unix.RawSockaddrInet6) netip.AddrPort {
	if sa.Family == unix.AF_INET {
		sa4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(sa4.Addr), swapPort(sa4.Port))
	}
	a := netip.AddrFrom16(sa.Addr).Unmap()
	if sa.Scope_id != 0 && a.Is6() {
		a = a.WithZone(strconv.Itoa(int(sa.Scope_id)))
	}
	return netip.AddrPortFrom(a, swapPort(sa.Port))
}

// swapPort turns a port from or to network order.
func swapPort(p uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], p)
	return binary.BigEndian.Uint16(b[:])
}

// writer is what one WriteBatch needs; it has one owner at a time.
type writer struct {
	msgs    [maxMessages]mmsghdr
	packets [maxMessages]int // packets in each message
	iovs    [4 * maxMessages]unix.Iovec
	control [maxMessages][controlSize]byte
	name    unix.RawSockaddrInet6
	namelen uint32

	from, to int // messages still to send
	sent     int
	errno    syscall.Errno
	call     func(fd uintptr) bool
}

func newWriter() *writer {
	w := new(writer)
	w.call = func(fd uintptr) bool {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&w.msgs[w.from])),
			uintptr(w.to-w.from), unix.MSG_DONTWAIT, 0, 0)
		w.errno, w.sent = errno, int(n)
		return errno != unix.EAGAIN && errno != unix.EINTR
	}
	return w
}

func (f *fastIO) write(c *Conn, packets [][]byte, to Addr) error {
	w := f.writers.Get().(*writer)
	defer f.writers.Put(w)
	if !f.connected {
		w.setName(to.AddrPort, f.v6)
	}
	for len(packets) > 0 {
		gso := f.gso.Load()
		taken := w.fill(packets, gso)
		done, err := f.flush(c, w)
		packets = packets[done:]
		if err == nil && done < taken {
			continue // GSO was refused: the rest goes without it
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// flush sends the messages of w and returns how many packets are dealt with.
func (f *fastIO) flush(c *Conn, w *writer) (packets int, err error) {
	for w.from < w.to {
		if err := f.raw.Write(w.call); err != nil {
			return packets, err
		}
		if w.errno == 0 {
			for range w.sent {
				packets += w.packets[w.from]
				w.from++
			}
			continue
		}
		n := w.packets[w.from]
		switch {
		case n > 1 && w.errno == unix.EIO:
			f.gso.Store(false) // no checksum offload on the way out
			return packets, nil
		case n > 1 && (w.errno == unix.EINVAL || w.errno == unix.EMSGSIZE):
			// Either the segment is larger than the device takes, or the
			// kernel cannot do it at all: sent one by one, it shows.
			fits, err := f.single(c, w)
			if err != nil {
				return packets, err
			}
			if fits && w.errno == unix.EINVAL {
				f.gso.Store(false)
			}
		case !c.lost(w.errno):
			return packets, w.errno
		}
		packets += n
		w.from++
	}
	return packets, nil
}

// single sends the packets of one refused message each on its own, and reports
// whether all of them went out.
func (f *fastIO) single(c *Conn, w *writer) (fits bool, err error) {
	m := w.msgs[w.from]
	segment := int(binary.NativeEndian.Uint16(w.control[w.from][unix.CmsgLen(0):]))
	iovs := unsafe.Slice(m.hdr.Iov, int(m.hdr.Iovlen))
	one := f.writers.Get().(*writer)
	defer f.writers.Put(one)
	one.name, one.namelen = w.name, w.namelen
	fits = true
	for _, iov := range iovs {
		rest := unsafe.Slice(iov.Base, int(iov.Len))
		for len(rest) > 0 {
			p := rest[:min(segment, len(rest))]
			rest = rest[len(p):]
			one.fill([][]byte{p}, false)
			if err := f.raw.Write(one.call); err != nil {
				return false, err
			}
			if one.errno != 0 {
				fits = false
				if !c.lost(one.errno) {
					return false, one.errno
				}
			}
		}
	}
	return fits, nil
}

// fill lays out as many packets as one call takes, and returns how many. With
// gso, packets of one size, and a shorter one after them, make one message;
// packets that lie side by side in one slice, with its capacity left to them,
// make one vector.
func (w *writer) fill(packets [][]byte, gso bool) (taken int) {
	w.from, w.to = 0, 0
	iov := 0
	for taken < len(packets) && w.to < maxMessages && iov < len(w.iovs) {
		first := taken
		size := len(packets[first])
		start := iov
		bytes := 0
		var run []byte // what the last vector covers
		for taken < len(packets) && iov < len(w.iovs) {
			p := packets[taken]
			if taken > first {
				if !gso || len(p) > size || taken-first == maxSegments || bytes+len(p) > maxGSOBytes ||
					len(packets[taken-1]) < size {
					break
				}
			}
			if len(p) == 0 {
				if taken == first {
					taken++
					first = taken
					if taken < len(packets) {
						size = len(packets[taken])
					}
					continue
				}
				break
			}
			if n := len(run); iov > start && n+len(p) <= cap(run) && &run[:n+1][n] == &p[0] {
				run = run[:n+len(p)]
				w.iovs[iov-1].SetLen(len(run))
			} else {
				run = p
				w.iovs[iov].Base = &p[0]
				w.iovs[iov].SetLen(len(p))
				iov++
			}
			bytes += len(p)
			taken++
		}
		if taken == first {
			break
		}
		m := &w.msgs[w.to]
		*m = mmsghdr{hdr: unix.Msghdr{Iov: &w.iovs[start]}}
		m.hdr.SetIovlen(iov - start)
		if w.namelen > 0 {
			m.hdr.Name = (*byte)(unsafe.Pointer(&w.name))
			m.hdr.Namelen = w.namelen
		}
		if taken-first > 1 {
			control := w.control[w.to][:]
			h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
			h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
			h.SetLen(unix.CmsgLen(2))
			binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], uint16(size))
			m.hdr.Control = &control[0]
			m.hdr.SetControllen(unix.CmsgSpace(2))
		}
		w.packets[w.to] = taken - first
		w.to++
	}
	return taken
}

func (w *writer) setName(ap netip.AddrPort, v6 bool) {
	a := ap.Addr()
	if !v6 {
		sa := (*unix.RawSockaddrInet4)(unsafe.Pointer(&w.name))
		*sa = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: swapPort(ap.Port())}
		if a = a.Unmap(); a.Is4() {
			sa.Addr = a.As4()
		}
		w.namelen = unix.SizeofSockaddrInet4
		return
	}
	w.name = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: swapPort(ap.Port()), Addr: a.As16()}
	if zone := a.Zone(); zone != "" {
		if i, err := strconv.Atoi(zone); err == nil {
			w.name.Scope_id = uint32(i)
		} else if ifi, err := net.InterfaceByName(zone); err == nil {
			w.name.Scope_id = uint32(ifi.Index)
		}
	}
	w.namelen = unix.SizeofSockaddrInet6
}
