package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"adit/tunnel/link/mux"
)

// What is spoken inside TLS, as ALPN names it: streams, or the records of a
// session over DTLS.
const (
	alpn       = "adit/1"
	alpnDetour = "adit-detour/1"
)

// Protocols are the names (ALPN) by which a listener over TLS is spoken to, for
// whoever shares its port.
func Protocols() []string { return []string{alpn, alpnDetour} }

// handshakeTimeout bounds a handshake of either transport.
const handshakeTimeout = 10 * time.Second

// tlsClientConfig trusts the authority of that fingerprint alone.
// own is shown if the peer asks for a certificate; it may be nil.
func tlsClientConfig(fingerprint [32]byte, protocol string, own *tls.Certificate) *tls.Config {
	config := &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{protocol},
		// The usual verification asks for names and public authorities; ours
		// is verifyPeer, on every connection.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if err := verifyPeer(fingerprint, rawChain(state.PeerCertificates), x509.ExtKeyUsageServerAuth); err != nil {
				return err
			}
			if state.NegotiatedProtocol != protocol {
				return fmt.Errorf("the relay does not speak %s", protocol)
			}
			return nil
		},
		SessionTicketsDisabled: true,
	}
	if own != nil {
		config.Certificates = []tls.Certificate{*own}
	}
	return config
}

// tlsServerConfig asks who dials for a certificate of the authority peers, if
// that is not nil.
func tlsServerConfig(get func() (*tls.Certificate, error), peers *[32]byte) *tls.Config {
	config := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{alpn, alpnDetour},
		SessionTicketsDisabled: true,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return get() },
		VerifyConnection: func(state tls.ConnectionState) error {
			if state.NegotiatedProtocol == "" {
				return fmt.Errorf("the peer does not speak %s", alpn)
			}
			if peers == nil {
				return nil
			}
			return verifyPeer(*peers, rawChain(state.PeerCertificates), x509.ExtKeyUsageClientAuth)
		},
	}
	if peers != nil {
		config.ClientAuth = tls.RequireAnyClientCert // VerifyConnection has the rest
	}
	return config
}

func muxConfig(client bool, maxStreams int, keepAlive time.Duration) mux.Config {
	return mux.Config{
		Client:     client,
		MaxStreams: maxStreams,
		KeepAlive:  keepAlive,
		Timeout:    ErrTimeout,
		Reset:      ErrReset,
		TooLarge:   ErrDatagramTooLarge,
		PeerClosed: func(reason string) error { return &CloseError{Reason: reason} },
	}
}

func serverMuxConfig(cfg *ListenConfig) mux.Config {
	c := muxConfig(false, cfg.MaxStreams, cfg.KeepAlive)
	c.PeerStreams, c.Budget, c.MaxBuffered = cfg.PeerStreams, cfg.budget, cfg.most()
	return c
}

// tlsClient makes the handshake over conn, which it closes if that does not succeed.
func tlsClient(ctx context.Context, conn net.Conn, cfg *DialConfig, protocol string) (*batchConn, error) {
	tuneTCP(conn)
	secured := newBatchConn(conn, func(c net.Conn) *tls.Conn {
		return tls.Client(c, tlsClientConfig(cfg.Fingerprint, protocol, cfg.Certificate))
	})
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		var verify *tls.CertificateVerificationError
		if errors.Is(err, ErrUntrusted) || errors.As(err, &verify) {
			return nil, fmt.Errorf("dial relay %s over TLS: %w", cfg.Relay, ErrUntrusted)
		}
		if noRelay(err) {
			return nil, fmt.Errorf("dial relay %s over TLS: %w (%w)", cfg.Relay, ErrNoRelay, err)
		}
		return nil, fmt.Errorf("dial relay %s over TLS: %w", cfg.Relay, err)
	}
	return secured, nil
}

// foreign are the alerts (RFC 8446 §6) by which a server says that it speaks another
// protocol or version, as no relay does: package tls has no type for them.
var foreign = []string{"no application protocol", "protocol version not supported", "handshake failure", "unrecognized name"}

// noRelay reports whether a handshake failed as nobody could fail it but another server.
func noRelay(err error) bool {
	var garbled tls.RecordHeaderError
	if errors.As(err, &garbled) {
		return true
	}
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" &&
		slices.ContainsFunc(foreign, func(why string) bool { return strings.HasSuffix(alert.Err.Error(), why) })
}

// tlsSessionOver makes a session over conn, which it closes if that does not succeed.
func tlsSessionOver(ctx context.Context, conn net.Conn, cfg *DialConfig) (Session, error) {
	secured, err := tlsClient(ctx, conn, cfg, alpn)
	if err != nil {
		return nil, err
	}
	conf := muxConfig(true, cfg.MaxStreams, cfg.KeepAlive)
	conf.MaxBuffered = cfg.Memory
	return &tlsSession{mux.New(secured, conf)}, nil
}

// tlsSession is a mux.Session over TLS as a Session.
type tlsSession struct{ *mux.Session }

func (s *tlsSession) OpenStream(ctx context.Context) (Stream, error) {
	stream, err := s.Session.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	return stream, nil
}

func (s *tlsSession) AcceptStream(ctx context.Context) (Stream, error) {
	stream, err := s.Session.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	return stream, nil
}

func (s *tlsSession) MaxDatagram() int     { return mux.MaxDatagram }
func (s *tlsSession) Transport() Transport { return TLS }

func (s *tlsSession) Stats() Stats {
	st := s.Session.Stats()
	return Stats{
		RTT: st.RTT, LastReceived: st.LastReceived, KeepAlive: st.KeepAlive,
		BytesSent: st.BytesSent, BytesReceived: st.BytesReceived, Streams: st.Streams,
		Worn: st.Highest >= mux.RenewAfter,
	}
}
