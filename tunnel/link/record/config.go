// Package record keeps DTLS 1.2 sessions over any net.PacketConn. pion makes the handshake;
// application data then takes our own path, sealed and opened in place and in batches. Records may
// be lost, duplicated and reordered by the network; only forged and replayed ones never arrive.
// Streams are left to package reliable, and whom to trust to package link.
package record

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"adit/internal/udpbatch"
	"adit/tunnel/link/farewell"
)

// Limits for one session's keys.
const (
	// RenewAfter is how many records either side should send at most before the session's owner
	// opens a new session. DTLS 1.2 can only change keys by a new handshake, and with this limit
	// the bounds of AES-GCM (RFC 9147 §4.5.3) hold with a margin.
	RenewAfter = 1 << 32
	// maxSent ends a session whose owner has not replaced it.
	maxSent = 1 << 36
	// maxForged ends a session that has received that many forged records.
	maxForged = 1 << 36
)

// Errors that callers branch on. The errors of a session that ended also match
// net.ErrClosed.
var (
	// ErrPeerClosed is the error of a session that the peer ended with close_notify.
	ErrPeerClosed = &endError{"the peer closed the session"}
	// ErrForgotten is the error of a session ended by a farewell: the peer no longer has the
	// session, because it was restarted or because this side was silent for too long.
	ErrForgotten = &endError{"the peer has no such session any more"}
	// ErrExhausted is the error of a session whose keys have sealed all they may.
	ErrExhausted = &endError{"the session's keys are used up"}
	errClosed    = &endError{"session closed"}
)

type endError struct{ text string }

func (e *endError) Error() string        { return e.text }
func (e *endError) Is(target error) bool { return target == net.ErrClosed }

// AlertError is the error of a session that the peer ended with a fatal alert.
type AlertError struct{ Description uint8 }

func (e *AlertError) Error() string {
	return fmt.Sprintf("the peer ended the session with alert %d", e.Description)
}

// Is makes an ended session match net.ErrClosed.
func (e *AlertError) Is(target error) bool { return target == net.ErrClosed }

// Config configures either end of a session.
type Config struct {
	// Certificates are this side's certificate, with an ECDSA key, and those up to its authority. A
	// Listener needs one.
	Certificates []tls.Certificate
	// VerifyPeer decides whether to trust the peer's certificates, its own first; an error ends the
	// handshake. A Client needs it.
	VerifyPeer func(certs []*x509.Certificate) error
	// RequireClientCert makes a Listener ask clients for a certificate.
	RequireClientCert bool
	// ServerName is sent to the server. If empty, none is sent.
	ServerName string
	// Protocols are the application protocols (ALPN), in order of preference.
	Protocols []string
	// Suites are the cipher suites to offer or accept. If nil, all of them, in the order that suits
	// this machine.
	Suites []Suite
	// NoConnectionID disables Connection IDs; such a session cannot move.
	NoConnectionID bool
	// NoOffload disables the use of the kernel's segmentation offloads.
	NoOffload bool
	// FlightInterval is how long to wait for a lost handshake message: constant at a client,
	// doubled each time at a Listener. If zero, 400 ms.
	FlightInterval time.Duration
	// HandshakeTimeout bounds the duration of a handshake at a Listener. If zero, 10 seconds.
	HandshakeTimeout time.Duration
	// MaxHandshakes bounds the handshakes in progress at a Listener, and MaxHandshakesPerAddress
	// those of one source: an IPv4 address, or 64 bits of an IPv6 address. If zero, 512 and 16.
	MaxHandshakes, MaxHandshakesPerAddress int
	// MaxSessions bounds a Listener's sessions. If zero, 65,536.
	MaxSessions int
	// Foreign is called with datagrams that reach a Listener's socket and whose first byte shows
	// that they belong to another protocol, such as QUIC (RFC 9443). It must not block or keep the
	// bytes. If nil, they are dropped.
	Foreign func(p []byte, from udpbatch.Addr)
	// Farewells holds a Listener's last words to its sessions' peers. Those left by the previous
	// process are sent when the Listener is served. If nil, clients only notice by themselves that
	// the process was killed.
	Farewells *farewell.Book
	// KeyLog receives the secrets in the format of SSLKEYLOGFILE. It breaks the security of every
	// session, and is for debugging only.
	KeyLog io.Writer
	// Logger logs what a person may want to know. If nil, nothing is logged.
	Logger *slog.Logger
}

// filled returns the configuration with its defaults filled in, or the error in it.
func (c Config) filled(server bool) (Config, error) {
	if server && len(c.Certificates) == 0 {
		return c, errors.New("certificates: a listener needs one")
	}
	if c.VerifyPeer == nil && (!server || c.RequireClientCert) {
		return c, errors.New("verify_peer: it must be said which certificates are trusted")
	}
	if c.Suites == nil {
		c.Suites = preferred()
	}
	for _, s := range c.Suites {
		if _, err := s.shape(); err != nil {
			return c, fmt.Errorf("suites: %w", err)
		}
	}
	setDefault(&c.FlightInterval, 400*time.Millisecond)
	setDefault(&c.HandshakeTimeout, 10*time.Second)
	setDefault(&c.MaxHandshakes, 512)
	setDefault(&c.MaxHandshakesPerAddress, 16)
	setDefault(&c.MaxSessions, 1<<16)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (c *Config) batchOptions() udpbatch.Options {
	return udpbatch.Options{NoOffload: c.NoOffload}
}

// ConnectionState is the result of the handshake.
type ConnectionState struct {
	Suite            Suite
	PeerCertificates []*x509.Certificate
	// Protocol is the negotiated application protocol, or empty.
	Protocol string
	// ConnectionIDs reports whether Connection IDs are used in both directions; only then can the
	// session move.
	ConnectionIDs bool
}
