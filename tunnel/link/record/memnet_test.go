package record

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// memNet is a network in memory whose every datagram a test can judge. It runs
// in a synctest bubble.
type memNet struct {
	mu    sync.Mutex
	socks map[netip.AddrPort]*memSock
	// outside are the addresses that a NAT shows for inner ones, and back.
	outside, inside map[netip.AddrPort]netip.AddrPort
	// judge says whether a datagram arrives, and after how long.
	judge func(from, to netip.AddrPort, p []byte) (arrives bool, after time.Duration)
}

type memSock struct {
	net      *memNet
	addr     netip.AddrPort
	in       chan memDatagram
	done     chan struct{}
	once     sync.Once
	mu       sync.Mutex
	deadline chan struct{}
}

type memDatagram struct {
	from netip.AddrPort
	data []byte
}

func newMemNet() *memNet { return &memNet{socks: map[netip.AddrPort]*memSock{}} }

func (n *memNet) listen(addr string) *memSock {
	s := &memSock{net: n, addr: netip.MustParseAddrPort(addr), in: make(chan memDatagram, 256), done: make(chan struct{}), deadline: make(chan struct{})}
	n.mu.Lock()
	n.socks[s.addr] = s
	n.mu.Unlock()
	return s
}

// remap makes a NAT show inner under another address; the one before is closed.
func (n *memNet) remap(inner, outer string) {
	in, out := netip.MustParseAddrPort(inner), netip.MustParseAddrPort(outer)
	n.mu.Lock()
	n.outside = map[netip.AddrPort]netip.AddrPort{in: out}
	n.inside = map[netip.AddrPort]netip.AddrPort{out: in, in: {}}
	n.mu.Unlock()
}

func (n *memNet) setJudge(judge func(from, to netip.AddrPort, p []byte) (bool, time.Duration)) {
	n.mu.Lock()
	n.judge = judge
	n.mu.Unlock()
}

func (s *memSock) WriteTo(p []byte, to net.Addr) (int, error) {
	select {
	case <-s.done:
		return 0, net.ErrClosed
	default:
	}
	n := s.net
	dst := to.(*net.UDPAddr).AddrPort()
	n.mu.Lock()
	arrives, after := true, 5*time.Millisecond
	if n.judge != nil {
		arrives, after = n.judge(s.addr, dst, p)
	}
	n.mu.Unlock()
	if !arrives {
		return len(p), nil
	}
	from := s.addr
	n.mu.Lock()
	if a, ok := n.outside[from]; ok {
		from = a
	}
	n.mu.Unlock()
	d := memDatagram{from, append([]byte(nil), p...)}
	time.AfterFunc(after, func() {
		n.mu.Lock()
		if a, ok := n.inside[dst]; ok {
			dst = a
		}
		peer := n.socks[dst]
		n.mu.Unlock()
		if peer != nil {
			select {
			case peer.in <- d:
			default:
			}
		}
	})
	return len(p), nil
}

func (s *memSock) ReadFrom(p []byte) (int, net.Addr, error) {
	s.mu.Lock()
	deadline := s.deadline
	s.mu.Unlock()
	select {
	case d := <-s.in:
		return copy(p, d.data), net.UDPAddrFromAddrPort(d.from), nil
	case <-s.done:
		return 0, nil, net.ErrClosed
	case <-deadline:
		return 0, nil, os.ErrDeadlineExceeded
	}
}

func (s *memSock) Close() error {
	s.once.Do(func() {
		close(s.done)
		s.net.mu.Lock()
		delete(s.net.socks, s.addr)
		s.net.mu.Unlock()
	})
	return nil
}

func (s *memSock) LocalAddr() net.Addr              { return net.UDPAddrFromAddrPort(s.addr) }
func (s *memSock) SetDeadline(time.Time) error      { return nil }
func (s *memSock) SetReadDeadline(time.Time) error  { return nil }
func (s *memSock) SetWriteDeadline(time.Time) error { return nil }
