package link

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"adit/tunnel/link/record"
	"adit/tunnel/link/reliable"
)

// carrier adapts a record.Conn to the interface that package reliable needs.
type carrier struct {
	*record.Conn
	packets []record.Packet
	direct  []reliable.Packet
}

// Direct delivers packets on the goroutine that read them.
func (c *carrier) Direct(handle func([]reliable.Packet)) {
	c.Conn.Direct(func(packets []record.Packet) {
		c.direct = c.direct[:0]
		for _, p := range packets {
			c.direct = append(c.direct, reliable.Packet{Number: p.Number, Data: p.Data, Time: p.Time})
		}
		handle(c.direct)
	})
}

func (c *carrier) Receive(into []reliable.Packet) (int, error) {
	if len(c.packets) < len(into) {
		c.packets = make([]record.Packet, len(into))
	}
	n, err := c.Conn.Receive(c.packets[:len(into)])
	for i, p := range c.packets[:n] {
		into[i] = reliable.Packet{Number: p.Number, Data: p.Data, Time: p.Time}
	}
	return n, err
}

// dtlsClient makes a session with the relay at addr over a socket of its own. A relay that
// was restarted amid the handshake is asked anew.
func dtlsClient(ctx context.Context, addr netip.AddrPort, cfg *DialConfig) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	for {
		s, err := dtlsTry(ctx, addr, cfg)
		if !errors.Is(err, record.ErrStalled) || ctx.Err() != nil {
			return s, err
		}
	}
}

func dtlsTry(ctx context.Context, addr netip.AddrPort, cfg *DialConfig) (Session, error) {
	socket, err := cfg.ListenPacket(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("dial relay %s over DTLS: %w", cfg.Relay, err)
	}
	var untrusted error
	conn, err := record.Client(ctx, socket, net.UDPAddrFromAddrPort(addr), record.Config{
		VerifyPeer: func(certs []*x509.Certificate) error {
			untrusted = verifyPeer(cfg.Fingerprint, rawChain(certs), x509.ExtKeyUsageServerAuth)
			return untrusted
		},
		Protocols: []string{alpn},
		NoOffload: cfg.NoOffload,
		Logger:    cfg.Logger,
	})
	if err != nil {
		if untrusted != nil {
			err = untrusted
		}
		return nil, fmt.Errorf("dial relay %s over DTLS: %w", cfg.Relay, err)
	}
	if got := conn.ConnectionState().Protocol; got != alpn {
		conn.Close()
		return nil, fmt.Errorf("dial relay %s over DTLS: the relay does not speak %s", cfg.Relay, alpn)
	}
	suspect := make(chan struct{}, 1)
	s := &dtlsSession{conn: conn, changed: make(chan struct{}, 1), renewAfter: record.RenewAfter, Session: reliable.New(&carrier{Conn: conn}, reliable.Config{
		Initiator:  true,
		KeepAlive:  cfg.KeepAlive,
		MaxStreams: cfg.MaxStreams,
		OwnStreams: cfg.MaxStreams,

		SessionWindow: int(cfg.Memory),
		OnSuspect: func() {
			select {
			case suspect <- struct{}{}:
			default:
			}
		},
	})}
	s.roaming.Go(func() { newRoamer(s, addr, cfg).run(suspect) })
	return s, nil
}

// dtlsServer makes a session from a connection that a record.Listener accepted.
func dtlsServer(conn *record.Conn, cfg *ListenConfig) Session {
	return &dtlsSession{conn: conn, renewAfter: record.RenewAfter, Session: reliable.New(&carrier{Conn: conn}, reliable.Config{
		KeepAlive:  cfg.KeepAlive,
		MaxStreams: cmp.Or(cfg.PeerStreams, cfg.MaxStreams),
		OwnStreams: cfg.MaxStreams,
		Budget:     cfg.budget,

		SessionWindow: int(cfg.most()),
	})}
}

func dtlsServerConfig(cfg *ListenConfig, cert *tls.Certificate) record.Config {
	return record.Config{
		Certificates:            []tls.Certificate{*cert},
		Protocols:               []string{alpn},
		HandshakeTimeout:        handshakeTimeout,
		MaxHandshakes:           maxHandshakesTotal,
		MaxHandshakesPerAddress: cfg.MaxHandshakes,
		MaxSessions:             cfg.MaxSessions,
		NoOffload:               cfg.NoOffload,
		Logger:                  cfg.Logger,
	}
}

func rawChain(certs []*x509.Certificate) [][]byte {
	chain := make([][]byte, len(certs))
	for i, cert := range certs {
		chain[i] = cert.Raw
	}
	return chain
}

// dtlsSession is a Session that wraps a reliable.Session over DTLS records.
type dtlsSession struct {
	*reliable.Session
	conn    *record.Conn
	roaming sync.WaitGroup
	changed chan struct{} // the transport is another one; of a client
	// renewAfter is the record number, in either direction, at which the session counts as worn.
	renewAfter uint64
}

func (s *dtlsSession) OpenStream(ctx context.Context) (Stream, error) {
	stream, err := s.Session.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	return &dtlsStream{stream, s}, nil
}

func (s *dtlsSession) AcceptStream(ctx context.Context) (Stream, error) {
	stream, err := s.Session.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	return &dtlsStream{stream, s}, nil
}

// Transport returns TLS while the session's records take a detour.
func (s *dtlsSession) Transport() Transport {
	if s.conn.Detoured() {
		return TLS
	}
	return DTLS
}

// TransportChanged returns a channel that receives a value when the result of Transport has
// changed.
func (s *dtlsSession) TransportChanged() <-chan struct{} { return s.changed }

func (s *dtlsSession) LocalAddr() net.Addr  { return s.conn.LocalAddr() }
func (s *dtlsSession) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

func (s *dtlsSession) Stats() Stats {
	st := s.Session.Stats()
	return Stats{
		RTT: st.RTT, LastReceived: st.LastReceived, KeepAlive: st.KeepAlive,
		BytesSent: st.BytesSent, BytesReceived: st.BytesReceived,
		PacketsSent: st.PacketsSent, PacketsLost: st.PacketsLost,
		Streams: st.Streams, Detour: s.conn.Detoured(),
		Worn: max(s.conn.NextNumber(), st.Newest) >= s.renewAfter,
	}
}

func (s *dtlsSession) Close(reason string) error {
	err := s.Session.Close(reason)
	s.roaming.Wait()
	return err
}

// dtlsStream is a reliable.Stream that knows its addresses.
type dtlsStream struct {
	*reliable.Stream
	session *dtlsSession
}

func (s *dtlsStream) LocalAddr() net.Addr  { return s.session.LocalAddr() }
func (s *dtlsStream) RemoteAddr() net.Addr { return s.session.RemoteAddr() }
