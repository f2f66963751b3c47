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

// Limits on one session's keys.
const (
	// RenewAfter is how many records either side should send at most before the
	// session's owner opens a new one: DTLS 1.2 has no change of keys but a new
	// handshake, and the bounds of AES-GCM (RFC 9147 §4.5.3) then hold with a margin.
	RenewAfter = 1 << 32
	// maxSent ends a session whose owner did not.
	maxSent = 1 << 36
	// maxForged ends a session that was sent so many forged records.
	maxForged = 1 << 36
)

// Errors that callers branch on. The errors of a session that ended also match
// net.ErrClosed.
var (
	// ErrPeerClosed is the end by the peer's close_notify.
	ErrPeerClosed = &endError{"the peer closed the session"}
	// ErrForgotten is the end by a farewell: the peer has no such session any more, as it
	// was started anew, or as this side was silent for too long.
	ErrForgotten = &endError{"the peer has no such session any more"}
	// ErrExhausted is the end of a session whose keys have sealed all they may.
	ErrExhausted = &endError{"the session's keys are used up"}
	errClosed    = &endError{"session closed"}
)

type endError struct{ text string }

func (e *endError) Error() string        { return e.text }
func (e *endError) Is(target error) bool { return target == net.ErrClosed }

// AlertError is the end of a session by the peer's fatal alert.
type AlertError struct{ Description uint8 }

func (e *AlertError) Error() string {
	return fmt.Sprintf("the peer ended the session with alert %d", e.Description)
}

// Is makes an ended session match net.ErrClosed.
func (e *AlertError) Is(target error) bool { return target == net.ErrClosed }

// Config is what both ends of a session need to know.
type Config struct {
	// Certificates are the own certificate, with an ECDSA key, and those up to
	// its authority. A Listener needs one.
	Certificates []tls.Certificate
	// VerifyPeer decides whether the peer's certificates, its own first, are
	// to be trusted; an error ends the handshake. A Client needs it.
	VerifyPeer func(certs []*x509.Certificate) error
	// RequireClientCert makes a Listener ask clients for a certificate.
	RequireClientCert bool
	// ServerName is sent to the server. If empty, none is.
	ServerName string
	// Protocols are the application protocols (ALPN), the preferred first.
	Protocols []string
	// Suites are the suites to offer or take. If nil, all, in the order that
	// suits this machine.
	Suites []Suite
	// NoConnectionID leaves Connection IDs out: such a session cannot move.
	NoConnectionID bool
	// NoOffload leaves the kernel's segmentation offloads alone.
	NoOffload bool
	// FlightInterval is how long a lost handshake message is waited for: at a
	// client each time, at a Listener twice as long each time. If zero, 400 ms.
	FlightInterval time.Duration
	// HandshakeTimeout bounds a handshake at a Listener. If zero, 10 seconds.
	HandshakeTimeout time.Duration
	// MaxHandshakes bounds the handshakes at a Listener that are under way, and
	// MaxHandshakesPerAddress those of one source: an IPv4 address, or 64 bits
	// of an IPv6 address. If zero, 512 and 16.
	MaxHandshakes, MaxHandshakesPerAddress int
	// MaxSessions bounds a Listener's sessions. If zero, 65,536.
	MaxSessions int
	// Foreign is given the datagrams that reach a Listener's socket and are of
	// another protocol by their first byte, as QUIC's are (RFC 9443). It must not
	// wait, nor keep the bytes. If nil, they are dropped.
	Foreign func(p []byte, from udpbatch.Addr)
	// Farewells has a Listener's last words to its sessions' peers. Those that the
	// process before left are said when the Listener is served. If nil, a client
	// notices only by itself that the process was killed.
	Farewells *farewell.Book
	// KeyLog is written the secrets in the format of SSLKEYLOGFILE. It breaks
	// the security of every session, and is for finding faults.
	KeyLog io.Writer
	// Logger is told of what a person may want to know. If nil, nothing is logged.
	Logger *slog.Logger
}

// filled returns the configuration with its defaults put in, or what is wrong with it.
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

// ConnectionState is what the handshake settled.
type ConnectionState struct {
	Suite            Suite
	PeerCertificates []*x509.Certificate
	// Protocol is the application protocol that was agreed on, or empty.
	Protocol string
	// ConnectionIDs reports whether the peer's records reach us under a
	// Connection ID, and ours the peer: only then can the session move.
	ConnectionIDs bool
}
