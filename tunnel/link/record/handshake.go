package record

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"

	"adit/internal/udpbatch"
)

// cidSize is the length of the Connection IDs that both ends assign.
const cidSize = 8

// handshakeMTU is the size of a handshake's datagrams: before anything is known about the path,
// IPv6's guaranteed minimum is all that can be relied on.
const handshakeMTU = 1200

// Client makes a session with the server at remote. The session takes ownership of pc, even if
// Client returns an error. ctx bounds only the handshake.
func Client(ctx context.Context, pc net.PacketConn, remote net.Addr, cfg Config) (*Conn, error) {
	cfg, err := cfg.filled(false)
	if err != nil {
		_ = pc.Close()
		return nil, fmt.Errorf("dtls client: %w", err)
	}
	s := &socket{conn: udpbatch.New(pc, cfg.batchOptions())}
	c := newConn(cfg, true, s, udpbatch.AddrOf(remote))
	f := newFeed(c, pc.LocalAddr(), remote)
	c.feed.Store(f)
	opts := cfg.options(newCID, f.refuse)
	// This way, a server that restarts during the handshake is found within one interval.
	opts = append(opts, dtls.WithDisableRetransmitBackoff(true))
	clientOpts := make([]dtls.ClientOption, 0, len(opts)+1)
	for _, o := range opts {
		clientOpts = append(clientOpts, o)
	}
	if cfg.ServerName != "" {
		clientOpts = append(clientOpts, dtls.WithServerName(cfg.ServerName))
	}
	pion, err := dtls.ClientWithOptions(f, remote, clientOpts...)
	if err != nil {
		_ = pc.Close()
		return nil, fmt.Errorf("set up the handshake with %v: %w", remote, err)
	}
	c.readers.Go(func() { c.readFrom(s) })
	going, giveUp := context.WithCancelCause(ctx)
	c.readers.Go(func() { f.watch(going, giveUp, cfg.FlightInterval) })
	err = c.handshake(going, pion, f)
	giveUp(nil)
	// A client that has the server's Finished repeats nothing.
	f.shut()
	c.feed.Store(nil)
	_ = pion.Close()
	if err != nil {
		c.finish(errClosed)
		c.readers.Wait()
		return nil, fmt.Errorf("dtls handshake with %v: %w", remote, err)
	}
	return c, nil
}

// readFrom reads a client's socket until it is closed or fails: the session may still continue over
// another.
func (c *Conn) readFrom(s *socket) {
	if err := s.read(c.deliver); err != nil {
		c.cfg.Logger.Debug("dtls socket gave up", "local", s.conn.LocalAddr(), "error", err)
	}
}

// options returns what both ends ask of pion. refused is called with the reason why the peer's
// certificates are not trusted, because pion may replace it by what happens next.
func (c *Config) options(cid func() []byte, refused func(error)) []dtls.Option {
	suites := make([]dtls.CipherSuiteID, len(c.Suites))
	for i, s := range c.Suites {
		suites[i] = dtls.CipherSuiteID(s)
	}
	opts := []dtls.Option{
		dtls.WithCipherSuites(suites...),
		dtls.WithExtendedMasterSecret(dtls.RequireExtendedMasterSecret),
		dtls.WithMTU(handshakeMTU),
		dtls.WithFlightInterval(c.FlightInterval),
		dtls.WithLoggerFactory(quiet{}),
		dtls.WithInsecureSkipVerify(true), // VerifyPeer decides, below
	}
	if len(c.Certificates) > 0 {
		opts = append(opts, dtls.WithCertificates(c.Certificates...))
	}
	if c.VerifyPeer != nil {
		opts = append(opts, dtls.WithVerifyPeerCertificate(func(raw [][]byte, _ [][]*x509.Certificate) error {
			certs, err := parseCertificates(raw)
			if err != nil {
				return err
			}
			if err := c.VerifyPeer(certs); err != nil {
				refused(err)
				return err
			}
			return nil
		}))
	}
	if len(c.Protocols) > 0 {
		opts = append(opts, dtls.WithSupportedProtocols(c.Protocols...))
	}
	if c.KeyLog != nil {
		opts = append(opts, dtls.WithKeyLogWriter(c.KeyLog))
	}
	if !c.NoConnectionID {
		opts = append(opts, dtls.WithConnectionIDGenerator(cid))
	}
	return opts
}

func parseCertificates(raw [][]byte) ([]*x509.Certificate, error) {
	if len(raw) == 0 || len(raw) > 16 {
		return nil, fmt.Errorf("the peer showed %d certificates", len(raw))
	}
	certs := make([]*x509.Certificate, len(raw))
	for i, der := range raw {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("parse the peer's certificate: %w", err)
		}
		certs[i] = cert
	}
	return certs, nil
}

// exported are the fields of pion's exported state that the record path needs; gob matches them by
// name.
type exported struct {
	LocalRandom, RemoteRandom             [32]byte
	CipherSuiteID                         uint16
	MasterSecret                          []byte
	PeerCertificates                      [][]byte
	LocalConnectionID, RemoteConnectionID []byte
	IsClient                              bool
	NegotiatedProtocol                    string
}

// handshake lets pion perform the handshake and takes over the keys.
func (c *Conn) handshake(ctx context.Context, pion *dtls.Conn, f *feed) error {
	if err := pion.HandshakeContext(ctx); err != nil {
		if refusal := f.refusal.Load(); refusal != nil {
			return *refusal
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	f.established.Store(true)
	state, ok := pion.ConnectionState()
	if !ok {
		return errors.New("the handshake left no state")
	}
	raw, err := state.MarshalBinary()
	if err != nil {
		return fmt.Errorf("export the handshake's state: %w", err)
	}
	var x exported
	if err := gob.NewDecoder(bytes.NewReader(raw)).Decode(&x); err != nil {
		return fmt.Errorf("read the handshake's state: %w", err)
	}
	clear(raw)
	if len(x.LocalConnectionID) != 0 && len(x.LocalConnectionID) != cidSize {
		return errors.New("the handshake settled another connection ID")
	}
	// Each end has chosen the ID that its peer's records carry.
	var toServer, toClient *half
	suite := Suite(x.CipherSuiteID)
	if c.isClient {
		toServer, toClient, err = deriveHalves(suite, x.MasterSecret, x.LocalRandom[:], x.RemoteRandom[:], x.LocalConnectionID, x.RemoteConnectionID)
		c.out, c.in = toServer, toClient
	} else {
		toServer, toClient, err = deriveHalves(suite, x.MasterSecret, x.RemoteRandom[:], x.LocalRandom[:], x.RemoteConnectionID, x.LocalConnectionID)
		c.out, c.in = toClient, toServer
	}
	clear(x.MasterSecret)
	if err != nil {
		return err
	}
	c.state = ConnectionState{
		Suite: suite, Protocol: x.NegotiatedProtocol,
		ConnectionIDs: len(x.LocalConnectionID) > 0 && len(x.RemoteConnectionID) > 0,
	}
	if len(x.PeerCertificates) > 0 {
		if c.state.PeerCertificates, err = parseCertificates(x.PeerCertificates); err != nil {
			return err
		}
	}
	c.localCID = x.LocalConnectionID
	c.sealFarewell()
	c.ready.Store(true)
	return nil
}

// feed is pion's PacketConn: it reads what the socket's reader puts in, and writes to the session's
// socket whatever has to be sent in a handshake.
type feed struct {
	conn          *Conn
	local, remote net.Addr
	in            chan []byte
	done          chan struct{}
	once          sync.Once

	// Of a client: what has carried the handshake on, the message that asked for a cookie,
	// and whether another server has asked for one since.
	heard   atomic.Int64
	cookie  []byte
	another atomic.Bool

	// established ends pion's right to send anything but a repeated flight.
	established atomic.Bool
	// refusal is why the peer's certificates are not trusted.
	refusal atomic.Pointer[error]
	// intercept, at a server, receives what pion writes first.
	intercept func(p []byte) (send bool)

	mu       sync.Mutex
	deadline chan struct{} // closed when a read shall end
	timer    *time.Timer
}

func newFeed(c *Conn, local, remote net.Addr) *feed {
	return &feed{
		conn: c, local: local, remote: remote,
		in: make(chan []byte, 32), done: make(chan struct{}), deadline: make(chan struct{}),
	}
}

// push passes pion a copy of a datagram; it is dropped if too many are waiting.
func (f *feed) push(p []byte) {
	select {
	case f.in <- bytes.Clone(p):
	default:
	}
}

func (f *feed) refuse(err error) { f.refusal.Store(&err) }

// shut ends the feed: pion reads and writes nothing any more.
func (f *feed) shut() { f.once.Do(func() { close(f.done) }) }

func (f *feed) ReadFrom(p []byte) (int, net.Addr, error) {
	f.mu.Lock()
	deadline := f.deadline
	f.mu.Unlock()
	select {
	case <-deadline:
		return 0, nil, os.ErrDeadlineExceeded
	default:
	}
	select {
	case b := <-f.in:
		return copy(p, b), f.remote, nil
	case <-f.done:
		return 0, nil, net.ErrClosed
	case <-deadline:
		return 0, nil, os.ErrDeadlineExceeded
	}
}

func (f *feed) WriteTo(p []byte, _ net.Addr) (int, error) {
	select {
	case <-f.done:
		return 0, net.ErrClosed
	default:
	}
	if f.intercept != nil && !f.intercept(p) {
		return len(p), nil
	}
	if f.established.Load() && !isFlight(p) {
		return len(p), nil // an alert of pion's own would end our session
	}
	_ = f.conn.write([][]byte{unwrapAlert(p)}, f.conn.at.Load())
	return len(p), nil
}

// unwrapAlert repairs an alert that ends a handshake: once Connection IDs have been negotiated,
// pion gives it their content type although it is not sealed yet, so no peer could read it.
func unwrapAlert(p []byte) []byte {
	r, _, ok := parse(p, cidSize)
	if !ok || r.typ != typeCID || r.epoch() != 0 || len(r.body) != 3 || r.body[2] != typeAlert {
		return p
	}
	q := append([]byte(nil), p[:11]...)
	q[0] = typeAlert
	return append(q, 0, 2, r.body[0], r.body[1])
}

// isFlight reports whether a datagram from pion is a repeated last flight and not an alert. A
// Connection ID hides an alert's type, but not its size.
func isFlight(p []byte) bool {
	switch p[0] {
	case typeCCS, typeHandshake:
		return true
	case typeCID:
		return len(p) >= headerSize+24+16
	}
	return false
}

// Close closes pion's connection; the socket belongs to the session.
func (f *feed) Close() error         { f.shut(); return nil }
func (f *feed) LocalAddr() net.Addr  { return f.local }
func (f *feed) RemoteAddr() net.Addr { return f.remote }

func (f *feed) SetDeadline(t time.Time) error { return f.SetReadDeadline(t) }

func (f *feed) SetReadDeadline(t time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	select {
	case <-f.deadline:
		f.deadline = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return nil
	}
	deadline := f.deadline
	if wait := time.Until(t); wait > 0 {
		f.timer = time.AfterFunc(wait, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			select {
			case <-deadline:
			default:
				close(deadline)
			}
		})
		return nil
	}
	close(deadline)
	return nil
}

func (f *feed) SetWriteDeadline(time.Time) error { return nil }

// shiftNumbers increases the numbers of a datagram's epoch 0 records.
func shiftNumbers(p []byte, by uint64) {
	for {
		r, rest, ok := parse(p, cidSize)
		if !ok {
			return
		}
		if r.epoch() == 0 {
			binary.BigEndian.PutUint64(r.whole[3:], r.seq+by)
		}
		p = rest
	}
}
