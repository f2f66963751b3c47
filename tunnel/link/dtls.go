package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"adit/internal/netwatch"
	"adit/tunnel/link/record"
	"adit/tunnel/link/reliable"
)

// carrier gives record.Conn the face that package reliable asks for.
type carrier struct {
	*record.Conn
	packets []record.Packet
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

// dtlsClient makes a session with the relay at addr over a socket of its own.
func dtlsClient(ctx context.Context, addr netip.AddrPort, cfg *DialConfig) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
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
	s := &dtlsSession{conn: conn, Session: reliable.New(&carrier{Conn: conn}, reliable.Config{
		Initiator:  true,
		KeepAlive:  cfg.KeepAlive,
		MaxStreams: cfg.MaxStreams,
		OnSuspect: func() {
			select {
			case suspect <- struct{}{}:
			default:
			}
		},
	})}
	s.roaming.Go(func() { s.roam(addr, cfg, suspect) })
	return s, nil
}

// dtlsServer makes a session of one that a record.Listener accepted.
func dtlsServer(conn *record.Conn, cfg *ListenConfig) Session {
	return &dtlsSession{conn: conn, Session: reliable.New(&carrier{Conn: conn}, reliable.Config{
		KeepAlive:  cfg.KeepAlive,
		MaxStreams: cfg.MaxStreams,
		Budget:     cfg.budget,
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

// dtlsSession is a reliable.Session over DTLS records as a Session.
type dtlsSession struct {
	*reliable.Session
	conn    *record.Conn
	roaming sync.WaitGroup
}

// roam moves the session to another socket when this machine's place in the
// network has changed, or when the peer no longer answers: the NAT between may
// have forgotten the old one. It ends with the session.
func (s *dtlsSession) roam(relay netip.AddrPort, cfg *DialConfig, suspect <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var watch sync.WaitGroup
	defer watch.Wait()
	changed := make(chan netwatch.Change, 1)
	if !cfg.NoWatch {
		w := netwatch.Watcher{Target: relay, Changed: func(c netwatch.Change) {
			select {
			case changed <- c:
			default:
			}
		}}
		watch.Go(func() { _ = w.Run(ctx) }) // it ends with ctx alone
	}
	defer cancel()
	for {
		var why string
		select {
		case <-s.Done():
			return
		case <-suspect:
			why = "no answer"
		case c := <-changed:
			why = string(c)
		}
		socket, err := cfg.ListenPacket(ctx, relay)
		if err == nil {
			err = s.conn.Rebind(socket)
		}
		s.Probe()
		if err != nil && !errors.Is(err, net.ErrClosed) {
			cfg.Logger.Warn("move the session to another socket", "reason", why, "error", err)
			continue
		}
		cfg.Logger.Info("session moves to another socket", "reason", why)
	}
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

func (s *dtlsSession) Transport() Transport { return DTLS }
func (s *dtlsSession) LocalAddr() net.Addr  { return s.conn.LocalAddr() }
func (s *dtlsSession) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

func (s *dtlsSession) Stats() Stats {
	st := s.Session.Stats()
	return Stats{
		RTT: st.RTT, LastReceived: st.LastReceived, KeepAlive: st.KeepAlive,
		BytesSent: st.BytesSent, BytesReceived: st.BytesReceived,
		PacketsSent: st.PacketsSent, PacketsReceived: st.PacketsReceived, PacketsLost: st.PacketsLost,
		Streams: st.Streams,
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
