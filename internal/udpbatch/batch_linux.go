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

	"adit/internal/monotime"
)

const (
	maxMessages = 64    // messages a system call
	maxSegments = 64    // UDP_MAX_SEGMENTS of older kernels
	maxGSOBytes = 65000 // below the largest IPv4 datagram, headers off
	maxGSOWhole = 1232  // what any IPv6 path takes whole: GSO does not fragment
	maxReads    = 32    // datagrams read a system call
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
	gsoMost   int // the largest datagram for it
	gro       bool
	info      bool // each read says which own address it came to
	writers   *sync.Pool
	in        *reader // made with the first read
}

// reader is what reading needs; there is one that reads.
type reader struct {
	msgs    [maxReads]mmsghdr
	iovs    [maxReads]unix.Iovec
	names   [maxReads]unix.RawSockaddrInet6
	control [maxReads][controlSize]byte
	want    int
	got     int
	errno   syscall.Errno
	call    func(fd uintptr) bool
}

func newFastIO(raw syscall.RawConn, udp *net.UDPConn, opt Options) *fastIO {
	f := &fastIO{raw: raw, connected: udp.RemoteAddr() != nil, gsoMost: maxGSOBytes, writers: &patient}
	if opt.NeverWait {
		f.writers = &hasty
	}
	if opt.Fragment {
		f.gsoMost = maxGSOWhole
	}
	err := raw.Control(func(fd uintptr) {
		domain, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN)
		f.v6 = err == nil && domain == unix.AF_INET6
		if local, ok := udp.LocalAddr().(*net.UDPAddr); ok && local.IP.IsUnspecified() {
			// A machine of several addresses must answer from the one asked.
			if f.v6 {
				f.info = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1) == nil
			} else {
				f.info = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1) == nil
			}
		}
		if opt.NoOffload {
			return
		}
		if _, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT); err == nil {
			f.gso.Store(true)
		}
		f.gro = !opt.NoGRO && unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
	})
	if err != nil {
		return nil
	}
	return f
}

func newReader() *reader {
	in := new(reader)
	try := func(fd uintptr) bool {
		n, errno := uintptr(0), syscall.EINTR
		for errno == unix.EINTR {
			n, _, errno = unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&in.msgs[0])),
				uintptr(in.want), unix.MSG_DONTWAIT, 0, 0)
		}
		in.errno, in.got = errno, int(n)
		return errno != unix.EAGAIN
	}
	in.call = func(fd uintptr) bool { return try(fd) || process.linger(try, fd, monotime.Now) }
	return in
}

// wait waits for something to read, and lets go of the buffers of the last read.
func (f *fastIO) wait() error {
	if f.in != nil {
		clear(f.in.iovs[:])
	}
	return f.raw.Read(func(fd uintptr) bool {
		_, _, err := unix.Recvfrom(int(fd), nil, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		return err != unix.EAGAIN && err != unix.EINTR
	})
}

func (f *fastIO) read(bufs []Buffer) (int, error) {
	if f.in == nil {
		f.in = newReader()
	}
	in := f.in
	in.want = min(len(bufs), len(in.msgs))
	for i := range in.want {
		in.iovs[i].Base = &bufs[i].B[0]
		in.iovs[i].SetLen(len(bufs[i].B))
		h := &in.msgs[i].hdr
		*h = unix.Msghdr{Iov: &in.iovs[i], Name: (*byte)(unsafe.Pointer(&in.names[i])), Namelen: unix.SizeofSockaddrInet6}
		h.SetIovlen(1)
		if f.gro || f.info {
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
		b.Addr = Addr{AddrPort: addrOfSockaddr(&in.names[i])}
		if f.gro || f.info {
			var segment int
			segment, b.Addr.local = parseControl(in.control[i][:in.msgs[i].hdr.Controllen])
			if segment > 0 && segment < b.N {
				b.Segment = segment
			}
		}
	}
	return in.got, nil
}

// parseControl finds the size of the datagrams that GRO joined, zero if it did
// not, and the own address that they came to, if the socket tells it.
func parseControl(control []byte) (segment int, local netip.Addr) {
	for len(control) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		size := int(h.Len)
		if size < unix.SizeofCmsghdr || size > len(control) {
			break
		}
		data := control[unix.CmsgLen(0):size]
		switch {
		case h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && len(data) >= 2:
			segment = int(binary.NativeEndian.Uint16(data))
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			local = netip.AddrFrom4([4]byte(data[4:]))
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			local = netip.AddrFrom16([16]byte(data))
		}
		control = control[min(unix.CmsgSpace(size-unix.CmsgLen(0)), len(control)):]
	}
	return segment, local
}

// appendInfo writes the control message that names the own address to send
// from, and returns its size.
func appendInfo(control []byte, local netip.Addr, v6 bool) int {
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	data := control[unix.CmsgLen(0):]
	if v6 {
		h.Level, h.Type = unix.IPPROTO_IPV6, unix.IPV6_PKTINFO
		h.SetLen(unix.CmsgLen(unix.SizeofInet6Pktinfo))
		a := local.As16()
		copy(data, a[:])
		clear(data[16:20])
		return unix.CmsgSpace(unix.SizeofInet6Pktinfo)
	}
	h.Level, h.Type = unix.IPPROTO_IP, unix.IP_PKTINFO
	h.SetLen(unix.CmsgLen(unix.SizeofInet4Pktinfo))
	a := local.Unmap().As4()
	clear(data[:12])
	copy(data[4:], a[:])
	return unix.CmsgSpace(unix.SizeofInet4Pktinfo)
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
	local   netip.Addr // to send from; the system chooses if not valid
	v6      bool

	from, to int // messages still to send
	sent     int
	errno    syscall.Errno
	call     func(fd uintptr) bool
}

// patient writers wait for room, hasty ones do not.
var (
	patient = sync.Pool{New: func() any { return newWriter(false) }}
	hasty   = sync.Pool{New: func() any { return newWriter(true) }}
)

func newWriter(neverWait bool) *writer {
	w := new(writer)
	w.call = func(fd uintptr) bool {
		n, errno := uintptr(0), syscall.EINTR
		for errno == unix.EINTR {
			n, _, errno = unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&w.msgs[w.from])),
				uintptr(w.to-w.from), unix.MSG_DONTWAIT, 0, 0)
		}
		w.errno, w.sent = errno, int(n)
		return errno != unix.EAGAIN || neverWait
	}
	return w
}

func (f *fastIO) write(c *Conn, packets [][]byte, to Addr) error {
	w := f.writers.Get().(*writer)
	defer f.writers.Put(w)
	w.local, w.namelen = netip.Addr{}, 0
	if !f.connected {
		w.setName(to.AddrPort, f.v6)
		if f.info && (f.v6 || to.local.Unmap().Is4()) {
			w.local, w.v6 = to.local, f.v6
		}
	}
	for len(packets) > 0 {
		most := 0
		if f.gso.Load() {
			most = f.gsoMost
		}
		taken := w.fill(packets, most)
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
	one.name, one.namelen, one.local, one.v6 = w.name, w.namelen, w.local, w.v6
	fits = true
	for _, iov := range iovs {
		rest := unsafe.Slice(iov.Base, int(iov.Len))
		for len(rest) > 0 {
			p := rest[:min(segment, len(rest))]
			rest = rest[len(p):]
			one.fill([][]byte{p}, 0)
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

// fill lays out as many packets as one call takes, and returns how many. Packets
// of one size, and a shorter one after them, make one message (GSO) unless they
// are larger than most; packets that lie side by side in one slice, with its
// capacity left to them, make one vector.
func (w *writer) fill(packets [][]byte, most int) (taken int) {
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
				if size > most || len(p) > size || taken-first == maxSegments || bytes+len(p) > maxGSOBytes ||
					len(packets[taken-1]) < size {
					break
				}
			}
			if len(p) == 0 { // a datagram all the same, but no segment of a message
				if taken == first {
					w.iovs[iov] = unix.Iovec{}
					iov++
					taken++
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
		m := &w.msgs[w.to]
		*m = mmsghdr{hdr: unix.Msghdr{Iov: &w.iovs[start]}}
		m.hdr.SetIovlen(iov - start)
		if w.namelen > 0 {
			m.hdr.Name = (*byte)(unsafe.Pointer(&w.name))
			m.hdr.Namelen = w.namelen
		}
		control, used := w.control[w.to][:], 0
		if taken-first > 1 { // first of the control messages: see single
			h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
			h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
			h.SetLen(unix.CmsgLen(2))
			binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], uint16(size))
			used = unix.CmsgSpace(2)
		}
		if w.local.IsValid() {
			used += appendInfo(control[used:], w.local, w.v6)
		}
		if used > 0 {
			m.hdr.Control = &control[0]
			m.hdr.SetControllen(used)
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
