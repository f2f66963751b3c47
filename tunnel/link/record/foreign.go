package record

import (
	"net/netip"

	"adit/internal/udpbatch"
)

// firstForeign is the lowest first byte of a datagram that is not DTLS but may be QUIC (RFC 9443,
// section 3).
const firstForeign = 64

// foreign passes the datagrams in a buffer that belong to another protocol to cfg.Foreign, and
// reports whether that was all of the buffer. Any others, which exist only if a sender uses both
// protocols, are sorted.
func (l *Listener) foreign(in *inbound, sort func(*inbound)) bool {
	if l.cfg.Foreign == nil || len(in.data) == 0 || in.data[0] < firstForeign && len(in.data) <= in.seg {
		return false
	}
	any := false
	for rest := in.data; len(rest) > 0; rest = rest[min(in.seg, len(rest)):] {
		any = any || rest[0] >= firstForeign
	}
	if !any {
		return false
	}
	for len(in.data) > 0 {
		if p := in.next(); p[0] >= firstForeign {
			l.cfg.Foreign(p, in.from)
		} else {
			sort(in.copyOf(p))
		}
	}
	in.release()
	return true
}

// SendForeign sends a datagram of another protocol from the Listener's socket.
func (l *Listener) SendForeign(p []byte, to udpbatch.Addr) error {
	return l.sock.conn.WriteBatch([][]byte{p}, to)
}

// ForeignAddr returns the address to use in SendForeign for a peer from which nothing has arrived
// yet.
func ForeignAddr(to netip.AddrPort) udpbatch.Addr {
	return udpbatch.AddrFrom(to, netip.Addr{})
}
