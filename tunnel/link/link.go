// Package link keeps sessions between an agent and a relay, or between two relay nodes:
// authenticated, multiplexed connections of streams and datagrams over DTLS, or over TLS if the
// network blocks UDP. Both transports give the same Session. What is said on the streams is left to
// package wire.
package link

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"adit/internal/lend"
	"adit/tunnel/link/record"
	"adit/tunnel/link/reliable"
)

// Transport is the protocol that carries a session.
type Transport string

// The transports. Auto makes Dial start with DTLS and let TLS join the race.
const (
	Auto Transport = ""
	DTLS Transport = "dtls"
	TLS  Transport = "tls"
)

// Errors that callers branch on. Every error of a session that has ended also
// matches net.ErrClosed.
var (
	// ErrUntrusted is returned by Dial if the relay is not the one that the caller trusts: its
	// authority has a different fingerprint.
	ErrUntrusted = errors.New("the relay's certificate is not of the authority that the token names")
	// ErrNoRelay is returned by Dial if something else answers at the relay's address: another
	// program, a proxy that intercepts TLS, a network's login page.
	ErrNoRelay = errors.New("what answers there is no relay")
	// ErrDatagramTooLarge is returned by SendDatagram for messages larger than MaxDatagram.
	ErrDatagramTooLarge = reliable.ErrDatagramTooLarge
	// ErrReset is returned by reads and writes on a stream that the peer has reset.
	ErrReset = reliable.ErrReset
	// ErrTimeout is the error of a session whose peer went silent.
	ErrTimeout = reliable.ErrTimeout
	// ErrForgotten is the error of an agent's session that the relay no longer knows: the relay was
	// killed and restarted, or the agent was away for too long.
	ErrForgotten = record.ErrForgotten
)

// Session is one authenticated, multiplexed connection. All methods may be
// called from several goroutines.
type Session interface {
	// OpenStream opens a stream. It returns immediately: the peer learns of the stream with its
	// first bytes. If the peer's limit on open streams is reached, it waits.
	OpenStream(ctx context.Context) (Stream, error)
	// AcceptStream waits for a stream that the peer opened.
	AcceptStream(ctx context.Context) (Stream, error)
	// SendDatagram sends one unreliable message of at most MaxDatagram bytes. The caller may reuse
	// b once it returns.
	SendDatagram(b []byte) error
	// ReceiveDatagram waits for one message and copies it into b, which should have room for 65,535
	// bytes.
	ReceiveDatagram(ctx context.Context, b []byte) (int, error)
	// MaxDatagram returns the size of the largest message that SendDatagram accepts now, in bytes.
	MaxDatagram() int
	// Transport returns DTLS or TLS, whichever carries the session now.
	Transport() Transport
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	Stats() Stats
	// Done is closed when the session has ended; Err then returns the reason.
	Done() <-chan struct{}
	// Err is nil while the session is alive. A *CloseError means that the peer closed it, and holds
	// the peer's reason.
	Err() error
	// Close ends the session and tells the peer why, in a short sentence.
	Close(reason string) error
}

// Prober is a Session that can ask for a sign of life ahead of schedule.
type Prober interface{ Probe() }

// Probe immediately asks the peer of s for a sign of life, if s is a Prober. The answer shows in
// Stats.LastReceived.
func Probe(s Session) {
	if p, ok := s.(Prober); ok {
		p.Probe()
	}
}

// Stream is one reliable byte stream inside a session. Close ends both
// directions; what was written before is still delivered. A Read of no bytes does
// not wait, and tells of a reset.
type Stream interface {
	net.Conn
	// CloseWrite ends the stream's sending direction: the peer reads io.EOF.
	CloseWrite() error
	// Reset abandons the stream in both directions: the peer's reads and writes fail.
	Reset()
	// Quiet reports whether the stream is open in both directions and nothing unread has arrived,
	// not even its end.
	Quiet() bool
}

// DirectReader is a Stream that can deliver data without waking its reader: while ReadDirect waits,
// arriving data is passed to take, in order, by the goroutine that reads it. ReadDirect returns
// only what take did not take, as Read would. take must not block or call the stream; it returns
// how many bytes it took.
type DirectReader interface {
	ReadDirect(b []byte, take func([]byte) int) (int, error)
}

// LentReader is a DirectReader that borrows memory only when there is something to copy into it.
type LentReader interface {
	ReadLent(l *lend.Buffer, take func([]byte) int) (int, error)
}

// ReadDirect reads from r into memory that l lends, as a LentReader or a DirectReader does if r is
// one, else as lend.Read does. The bytes are valid until l.Done, which must be called.
func ReadDirect(r io.Reader, l *lend.Buffer, take func([]byte) int) ([]byte, error) {
	var n int
	var err error
	switch d := r.(type) {
	case LentReader:
		n, err = d.ReadLent(l, take)
	case DirectReader:
		n, err = d.ReadDirect(l.Lend(), take)
	default:
		return lend.Read(r, l)
	}
	if n == 0 {
		return nil, err
	}
	return l.Lend()[:n], err
}

// Stats is a snapshot of a session.
type Stats struct {
	// RTT is the smoothed round-trip time; zero if not measured yet.
	RTT time.Duration
	// LastReceived is when the peer was last heard from, keep-alives included.
	LastReceived time.Time
	// KeepAlive is the interval within which a living peer is heard from.
	KeepAlive time.Duration
	// BytesSent and BytesReceived count the payload of streams and datagrams.
	BytesSent, BytesReceived uint64
	// PacketsSent and PacketsLost count records; zero over TLS.
	PacketsSent, PacketsLost uint64
	// Streams is the number of open streams.
	Streams int
	// Detour is set while the records of a session that began over DTLS travel over TLS because UDP
	// does not get through. The session returns to UDP by itself.
	Detour bool
	// Worn is set once the session has used so much of its keys or its numbers that another should
	// take over. The session itself ends only much later.
	Worn bool
}

// CloseError is the error of a session that the peer closed. It matches net.ErrClosed.
type CloseError = reliable.CloseError
