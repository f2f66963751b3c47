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

// Transport names what carries a session.
type Transport string

// The transports. Auto lets Dial begin with DTLS and join TLS to the race.
const (
	Auto Transport = ""
	DTLS Transport = "dtls"
	TLS  Transport = "tls"
)

// Errors that callers branch on. Every error of a session that has ended also
// matches net.ErrClosed.
var (
	// ErrUntrusted is returned by Dial if the relay is not the one that the
	// caller trusts: its authority's fingerprint is another.
	ErrUntrusted = errors.New("the relay's certificate is not of the authority that the token names")
	// ErrNoRelay is returned by Dial if something else answers at the relay's
	// address: another program, a proxy that opens TLS, a network's login page.
	ErrNoRelay = errors.New("what answers there is no relay")
	// ErrDatagramTooLarge is returned by SendDatagram above MaxDatagram.
	ErrDatagramTooLarge = reliable.ErrDatagramTooLarge
	// ErrReset is what reads and writes of a stream return that the peer gave up.
	ErrReset = reliable.ErrReset
	// ErrTimeout is the reason of a session whose peer went silent.
	ErrTimeout = reliable.ErrTimeout
	// ErrForgotten is the reason of an agent's session that the relay has not any more:
	// it was killed and has started again, or the agent was away for too long.
	ErrForgotten = record.ErrForgotten
)

// Session is one authenticated, multiplexed connection. All methods may be
// called from several goroutines.
type Session interface {
	// OpenStream opens a stream. It returns at once: the peer learns of the
	// stream with its first bytes. It waits while the peer's limit on open
	// streams is reached.
	OpenStream(ctx context.Context) (Stream, error)
	// AcceptStream waits for a stream that the peer opened.
	AcceptStream(ctx context.Context) (Stream, error)
	// SendDatagram sends one unreliable message of at most MaxDatagram bytes;
	// b may be used again when it returns.
	SendDatagram(b []byte) error
	// ReceiveDatagram waits for one message and copies it into b, which should
	// have room for 65,535 bytes.
	ReceiveDatagram(ctx context.Context, b []byte) (int, error)
	// MaxDatagram is the largest message that SendDatagram takes now, in bytes.
	MaxDatagram() int
	// Transport is DTLS or TLS, whatever carries the session now.
	Transport() Transport
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	Stats() Stats
	// Done is closed when the session has ended; Err then says why.
	Done() <-chan struct{}
	// Err is nil while the session lives. A *CloseError tells that the peer
	// closed it, and its reason.
	Err() error
	// Close ends the session and tells the peer why, in a short sentence.
	Close(reason string) error
}

// Prober is a Session that can ask for a sign of life before its time.
type Prober interface{ Probe() }

// Probe asks the peer of s for a sign of life at once, if s is a Prober. What comes shows
// in Stats.LastReceived.
func Probe(s Session) {
	if p, ok := s.(Prober); ok {
		p.Probe()
	}
}

// Stream is one reliable byte stream inside a session. Close ends both
// directions; what was written before is still delivered.
type Stream interface {
	net.Conn
	// CloseWrite ends the stream's sending direction: the peer reads io.EOF.
	CloseWrite() error
	// Reset gives the stream up in both directions: the peer's reads and writes fail.
	Reset()
	// Quiet reports whether the stream is open both ways and nothing has come
	// that is not yet read, no end either.
	Quiet() bool
}

// DirectReader is a Stream whose reader can be spared a wake-up: while
// ReadDirect waits, what comes is given to take at once by the goroutine that
// brings it, in order, and only what take did not take is returned, as Read
// returns it. take must neither wait nor call the stream; it returns how many
// bytes it took.
type DirectReader interface {
	ReadDirect(b []byte, take func([]byte) int) (int, error)
}

// LentReader is a DirectReader that takes memory only when there is something
// to copy into it.
type LentReader interface {
	ReadLent(l *lend.Buffer, take func([]byte) int) (int, error)
}

// ReadDirect reads from r into what l lends, as a LentReader or a DirectReader
// does if r is one, and else as lend.Read. The bytes are valid until l.Done,
// which must follow.
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
	// RTT is the smoothed round-trip time; zero if not yet measured.
	RTT time.Duration
	// LastReceived is when the peer was last heard, keep-alives included.
	LastReceived time.Time
	// KeepAlive is the interval within which a living peer is heard.
	KeepAlive time.Duration
	// BytesSent and BytesReceived count payload of streams and datagrams.
	BytesSent, BytesReceived uint64
	// PacketsSent and PacketsLost count records; zero over TLS.
	PacketsSent, PacketsLost uint64
	// Streams is how many streams are open.
	Streams int
	// Detour is set while the records of a session that began over DTLS go over
	// TLS, because UDP does not pass; the session returns to UDP by itself.
	Detour bool
	// Worn is set once the session has used so much of its keys, or of its numbers,
	// that another should take over; it ends by itself long after.
	Worn bool
}

// CloseError is the end of a session that the peer asked for. It matches
// net.ErrClosed.
type CloseError = reliable.CloseError
