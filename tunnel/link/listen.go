package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"adit/tunnel/link/mux"
)

// ListenConfig says where to listen and as whom.
type ListenConfig struct {
	// Addr is host:port for UDP and TCP alike; with port 0 both get the same
	// free one. It is not used for what PacketConn or TCP give.
	Addr string
	// PacketConn is used for DTLS and TCP for TLS, instead of sockets on Addr.
	// If only one of them is set, only that transport is served.
	PacketConn net.PacketConn
	TCP        net.Listener
	// Certificate is of Authority.Issue. GetCertificate, if set, is asked at
	// each handshake instead.
	Certificate    tls.Certificate
	GetCertificate func() (*tls.Certificate, error)
	// KeepAlive is the interval of pings on an idle session. If zero, one that
	// suits the transport.
	KeepAlive time.Duration
	// MaxStreams is how many streams may be open in each direction of a
	// session. If zero, 16,384.
	MaxStreams int
	// MaxSessions is how many sessions may live at once. If zero, 20,000.
	MaxSessions int
	// MaxHandshakes is how many handshakes one address (IPv6: one /64) may have
	// under way. If zero, 64.
	MaxHandshakes int
	// Logger may be nil.
	Logger *slog.Logger
}

// maxHandshakesTotal is how many handshakes are under way together.
const maxHandshakesTotal = 512

// Listener takes sessions of both transports.
type Listener struct {
	cfg      ListenConfig
	addr     net.Addr
	tcp      net.Listener
	tls      *tls.Config
	log      *slog.Logger
	sessions chan Session
	ctx      context.Context // of the handshakes; ended by Close
	cancel   context.CancelFunc
	group    sync.WaitGroup

	mu         sync.Mutex
	handshakes map[netip.Prefix]int
	total      int
	live       int
	err        error
}

// Listen opens the sockets and begins to take sessions; Accept gives them out.
func Listen(cfg ListenConfig) (*Listener, error) {
	if cfg.MaxSessions == 0 {
		cfg.MaxSessions = 20000
	}
	if cfg.MaxHandshakes == 0 {
		cfg.MaxHandshakes = 64
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	get := cfg.GetCertificate
	if get == nil {
		if len(cfg.Certificate.Certificate) == 0 {
			return nil, errors.New("listen: a certificate is needed")
		}
		cert := cfg.Certificate
		get = func() (*tls.Certificate, error) { return &cert, nil }
	}
	l := &Listener{
		cfg:        cfg,
		tls:        tlsServerConfig(get),
		log:        cfg.Logger,
		sessions:   make(chan Session),
		handshakes: map[netip.Prefix]int{},
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if l.tcp != nil {
		l.group.Go(l.serveTCP)
	}
	return l, nil
}

// open finds the sockets: the caller's, or both on one port.
func (l *Listener) open() error {
	if l.cfg.PacketConn != nil || l.cfg.TCP != nil {
		l.tcp = l.cfg.TCP
		if l.tcp != nil {
			l.addr = l.tcp.Addr()
		} else {
			l.addr = l.cfg.PacketConn.LocalAddr()
		}
		return nil
	}
	tcp, err := net.Listen("tcp", l.cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen for agents on %s: %w", l.cfg.Addr, err)
	}
	l.tcp, l.addr = tcp, tcp.Addr()
	return nil
}

// Addr is the address of both sockets.
func (l *Listener) Addr() net.Addr { return l.addr }

// Accept waits for a session whose handshake is done. After Close its error
// matches net.ErrClosed.
func (l *Listener) Accept(ctx context.Context) (Session, error) {
	select {
	case s := <-l.sessions:
		return s, nil
	case <-l.ctx.Done():
		return nil, fmt.Errorf("accept a session: %w", net.ErrClosed)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close stops listening. Sessions over TLS live on; sessions over DTLS share
// the socket and end with it.
func (l *Listener) Close() error {
	l.cancel()
	var err error
	if l.tcp != nil {
		err = l.tcp.Close()
	}
	l.group.Wait()
	return err
}

func (l *Listener) serveTCP() {
	var pause time.Duration
	for {
		conn, err := l.tcp.Accept()
		if err != nil {
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// Out of file descriptors, most likely: others must end first.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			l.log.Warn("accept over tcp", "error", err, "pause", pause)
			select {
			case <-time.After(pause):
			case <-l.ctx.Done():
				return
			}
			continue
		}
		pause = 0
		from := source(conn.RemoteAddr())
		if !l.admit(from) {
			conn.Close()
			continue
		}
		l.group.Go(func() {
			defer l.leave(from)
			l.handshakeTLS(conn)
		})
	}
}

func (l *Listener) handshakeTLS(conn net.Conn) {
	tuneTCP(conn)
	secured := tls.Server(conn, l.tls)
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		l.log.Debug("handshake over tls", "remote", conn.RemoteAddr(), "error", err)
		conn.Close()
		return
	}
	l.deliver(&tlsSession{mux.New(secured, muxConfig(false, l.cfg.MaxStreams, l.cfg.KeepAlive))})
}

// deliver hands a session to Accept, or closes it.
func (l *Listener) deliver(s Session) {
	l.mu.Lock()
	full := l.live >= l.cfg.MaxSessions
	if !full {
		l.live++
	}
	l.mu.Unlock()
	if full {
		s.Close("the relay has too many sessions")
		return
	}
	go func() { // ends with the session, which may outlive the listener
		<-s.Done()
		l.mu.Lock()
		l.live--
		l.mu.Unlock()
	}()
	timer := time.NewTimer(handshakeTimeout)
	defer timer.Stop()
	select {
	case l.sessions <- s:
	case <-l.ctx.Done():
		s.Close("the relay is going away")
	case <-timer.C:
		s.Close("the relay is too busy")
	}
}

// source is what handshakes are counted by: an IPv4 address or an IPv6 /64,
// which is what one customer has.
func source(addr net.Addr) netip.Prefix {
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip := ap.Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits)
	return prefix
}

func (l *Listener) admit(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= maxHandshakesTotal || l.handshakes[from] >= l.cfg.MaxHandshakes {
		return false
	}
	l.total++
	l.handshakes[from]++
	return true
}

func (l *Listener) leave(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.handshakes[from]--; l.handshakes[from] == 0 {
		delete(l.handshakes, from)
	}
}
