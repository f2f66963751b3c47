package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/crowd"
	"adit/internal/netblock"
	"adit/tunnel/link/budget"
	"adit/tunnel/link/farewell"
	"adit/tunnel/link/mux"
	"adit/tunnel/link/record"
)

// ListenConfig says where to listen and with which identity.
type ListenConfig struct {
	// Addr is host:port for both UDP and TCP; with port 0, both get the same free port. It is
	// ignored for a transport whose socket is given by PacketConn or TCP.
	Addr string
	// PacketConn and TCP are used for DTLS and TLS instead of sockets on Addr. If only one of them
	// is set, only its transport is served.
	PacketConn net.PacketConn
	TCP        net.Listener
	// Certificate is made by Authority.Issue. If GetCertificate is set, it is called instead, at
	// each TLS handshake and once for DTLS.
	Certificate    tls.Certificate
	GetCertificate func() (*tls.Certificate, error)
	// Peers, if set, is the authority of those who may dial: each must present a certificate from
	// its IssueNode. Only TLS is served in this case, so TCP is required.
	Peers *[32]byte
	// KeepAlive is the interval between pings on an idle session. If zero, one that suits the
	// transport.
	KeepAlive time.Duration
	// MaxStreams is how many streams may be open in each direction of a
	// session. If zero, 16,384.
	MaxStreams int
	// PeerStreams is how many of them the dialling side may open; the memory held for a stranger
	// grows with it. If zero, MaxStreams; over DTLS at least 1,024.
	PeerStreams int
	// MaxSessions is how many sessions may exist at once. If zero, 20,000.
	MaxSessions int
	// MaxHandshakes is how many handshakes may be in progress for one address (IPv6: one /64). If
	// zero, 64.
	MaxHandshakes int
	// NoOffload disables the use of the kernel's segmentation offloads.
	NoOffload bool
	// Shared lets another protocol use the UDP socket: see Listener.Shared.
	Shared bool
	// Memory bounds what has come and waits for readers in all sessions
	// together, in bytes, beyond 4 MiB in each; one may have 64 MiB, and at most a
	// quarter of it, but one with a peer, which is of many agents, all. If zero, 1 GiB.
	Memory int64
	// More, if set, supplies further connections for TLS, such as those of agents at the visitors'
	// port.
	More net.Listener
	// Farewells, if set, is the path of a file with the last words to the agents of DTLS sessions.
	// If this process is killed, the next one sends them.
	Farewells string
	// Logger may be nil.
	Logger *slog.Logger

	budget *budget.Budget
}

const (
	mostOfSession = 64 << 20
	freeOfSession = 4 << 20 // what a session holds in any case
)

// maxHandshakesTotal is how many handshakes may be in progress altogether. Beyond it, the
// longest-running one from the most crowded block is ended; if no block has many, only after
// handshakeGrace.
const (
	maxHandshakesTotal = 512
	handshakeGrace     = 3 * time.Second
)

// Listener accepts sessions over both transports.
type Listener struct {
	cfg      ListenConfig
	addr     net.Addr
	tcp      net.Listener     // nil if TLS is not served
	dtls     *record.Listener // nil if DTLS is not served
	words    *farewell.Book   // nil without
	shared   *sharedConn      // nil unless another protocol uses the socket of DTLS
	tls      *tls.Config
	log      *slog.Logger
	sessions chan Session
	ctx      context.Context // of the handshakes; ended by Close
	cancel   context.CancelFunc
	group    sync.WaitGroup

	turnedAway, failed, done atomic.Uint64 // handshakes

	handshakes crowd.Crowd // under way

	mu   sync.Mutex
	live map[Session]struct{}
}

// most is how many bytes may wait for readers in one session.
func (c *ListenConfig) most() int64 {
	if c.Peers != nil {
		return max(c.Memory, freeOfSession)
	}
	return min(mostOfSession, max(c.Memory/4, freeOfSession))
}

// Listen opens the sockets and starts to take sessions, which Accept returns.
func Listen(cfg ListenConfig) (*Listener, error) {
	if cfg.MaxSessions == 0 {
		cfg.MaxSessions = 20000
	}
	if cfg.MaxHandshakes == 0 {
		cfg.MaxHandshakes = 64
	}
	if cfg.Memory == 0 {
		cfg.Memory = 1 << 30
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Peers != nil && (cfg.TCP == nil || cfg.PacketConn != nil) {
		return nil, errors.New("listen: peers prove themselves over TLS alone")
	}
	cfg.budget = budget.New(cfg.Memory)
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
		tls:        tlsServerConfig(get, cfg.Peers),
		log:        cfg.Logger,
		sessions:   make(chan Session),
		handshakes: crowd.Crowd{PerBlock: cfg.MaxHandshakes, Most: maxHandshakesTotal, Grace: handshakeGrace},
		live:       map[Session]struct{}{},
	}
	cert, err := get()
	if err != nil {
		return nil, fmt.Errorf("listen: get the certificate: %w", err)
	}
	udp, err := l.open()
	if err != nil {
		return nil, err
	}
	if udp != nil {
		conf := dtlsServerConfig(&l.cfg, cert)
		if cfg.Shared {
			l.shared = newSharedConn(udp.LocalAddr())
			conf.Foreign = l.shared.deliver
		}
		conf.Farewells = l.openFarewells()
		if l.dtls, err = record.Listen(udp, conf); err != nil {
			l.closeFarewells()
			if l.tcp != nil {
				l.tcp.Close()
			}
			return nil, fmt.Errorf("listen: %w", err)
		}
	}
	if l.shared != nil {
		l.shared.send = l.dtls.SendForeign
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if l.tcp != nil {
		l.group.Go(func() { l.serveTCP(l.tcp) })
	}
	if cfg.More != nil {
		l.group.Go(func() { l.serveTCP(cfg.More) })
	}
	if l.dtls != nil {
		l.group.Go(func() {
			if err := l.dtls.Serve(context.Background()); err != nil && l.ctx.Err() == nil {
				l.log.Error("serve DTLS", "error", err)
			}
		})
		l.group.Go(l.acceptDTLS)
	}
	return l, nil
}

// open provides the sockets: the caller's, or both on one port. It sets tcp and addr and returns
// the DTLS socket.
func (l *Listener) open() (net.PacketConn, error) {
	if l.cfg.PacketConn != nil || l.cfg.TCP != nil {
		l.tcp = l.cfg.TCP
		if l.tcp != nil {
			l.addr = l.tcp.Addr()
		} else {
			l.addr = l.cfg.PacketConn.LocalAddr()
		}
		return l.cfg.PacketConn, nil
	}
	// The same port may be free for TCP but taken for UDP; if so, try another.
	for try := 0; ; try++ {
		tcp, err := net.Listen("tcp", l.cfg.Addr)
		if err != nil {
			return nil, fmt.Errorf("listen for agents on %s: %w", l.cfg.Addr, err)
		}
		udp, err := net.ListenPacket("udp", tcp.Addr().String())
		if err == nil {
			l.tcp, l.addr = tcp, tcp.Addr()
			return udp, nil
		}
		tcp.Close()
		if _, port, _ := net.SplitHostPort(l.cfg.Addr); port != "0" && port != "" || try == 20 {
			return nil, fmt.Errorf("listen for agents on %s: %w", l.cfg.Addr, err)
		}
	}
}

// Addr returns the address of both sockets.
func (l *Listener) Addr() net.Addr { return l.addr }

// Shared returns a connection for the packets that reach the UDP socket and whose first byte shows
// that they are not DTLS; this is how QUIC is told apart (RFC 9443). It is nil unless
// ListenConfig.Shared is set and DTLS is served. Closing it leaves the socket to DTLS.
func (l *Listener) Shared() net.PacketConn {
	if l.shared == nil {
		return nil
	}
	return l.shared
}

// Accept waits for a session whose handshake is complete. After Close, its error matches
// net.ErrClosed.
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

// Close stops listening and ends the sessions.
func (l *Listener) Close() error {
	l.cancel()
	var err error
	if l.tcp != nil {
		err = l.tcp.Close()
	}
	if l.cfg.More != nil {
		err = errors.Join(err, l.cfg.More.Close())
	}
	l.mu.Lock()
	sessions := slices.Collect(maps.Keys(l.live))
	l.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range sessions {
		closing.Go(func() { s.Close(goingAway) })
	}
	closing.Wait()
	if l.dtls != nil {
		l.dtls.Close()
	}
	l.closeFarewells()
	if l.shared != nil {
		l.shared.Close()
	}
	l.group.Wait()
	return err
}

// Handshakes counts the outcomes of handshakes.
type Handshakes struct {
	Done       uint64 // became a session
	Failed     uint64 // over TLS, or with another protocol inside; DTLS drops the rest without a word
	TurnedAway uint64 // by a limit
}

// Handshakes returns the counts since Listen.
func (l *Listener) Handshakes() Handshakes {
	n := Handshakes{Done: l.done.Load(), Failed: l.failed.Load(), TurnedAway: l.turnedAway.Load() + l.handshakes.Cut()}
	if l.dtls != nil {
		n.TurnedAway += l.dtls.Cut()
	}
	return n
}

// Unread describes the data that waits for readers in all sessions together.
type Unread struct {
	Bytes   int64  // beyond 4 MiB in each session; in steps of a MiB
	GivenUp uint64 // streams that were reset, since too much of them waited
}

// Unread returns the current figures.
func (l *Listener) Unread() Unread {
	return Unread{Bytes: l.cfg.budget.Used(), GivenUp: l.cfg.budget.GivenUp()}
}

const goingAway = "the relay is going away"

func (l *Listener) acceptDTLS() {
	for {
		conn, err := l.dtls.Accept(l.ctx)
		if err != nil {
			return
		}
		if conn.ConnectionState().Protocol != alpn {
			l.failed.Add(1)
			conn.Close()
			continue
		}
		leave, ok := l.admit(conn.RemoteAddr(), func() { l.group.Go(func() { conn.Close() }) })
		if !ok {
			conn.Close()
			continue
		}
		s := dtlsServer(conn, &l.cfg)
		l.group.Go(func() {
			defer leave()
			l.deliver(s)
		})
	}
}

func (l *Listener) serveTCP(from net.Listener) {
	var pause time.Duration
	for {
		conn, err := from.Accept()
		if err != nil {
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// Probably out of file descriptors: other connections must end first.
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
		leave, ok := l.admit(conn.RemoteAddr(), func() { conn.Close() })
		if !ok {
			conn.Close()
			continue
		}
		l.group.Go(func() {
			defer leave()
			l.handshakeTLS(conn, leave)
		})
	}
}

// handshakeTLS performs the handshake and serves the negotiated protocol. leave stops counting the
// peer among those that have yet to prove themselves.
func (l *Listener) handshakeTLS(conn net.Conn, leave func()) {
	tuneTCP(conn)
	secured := newBatchConn(conn, func(c net.Conn) *tls.Conn { return tls.Server(c, l.tls) })
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		l.log.Debug("handshake over tls", "remote", conn.RemoteAddr(), "error", err)
		l.failed.Add(1)
		conn.Close()
		return
	}
	if secured.ConnectionState().NegotiatedProtocol == alpnDetour {
		l.carryDetour(secured, leave)
		return
	}
	l.deliver(&tlsSession{mux.New(secured, serverMuxConfig(&l.cfg))})
}

// deliver hands a session to Accept, or closes it.
func (l *Listener) deliver(s Session) {
	l.mu.Lock()
	full := len(l.live) >= l.cfg.MaxSessions
	if !full {
		l.live[s] = struct{}{}
	}
	l.mu.Unlock()
	if full {
		l.turnedAway.Add(1)
		s.Close("the relay has too many sessions")
		return
	}
	l.done.Add(1)
	l.group.Go(func() { // Close ends every session that lives
		<-s.Done()
		l.mu.Lock()
		delete(l.live, s)
		l.mu.Unlock()
	})
	timer := time.NewTimer(handshakeTimeout)
	defer timer.Stop()
	select {
	case l.sessions <- s:
		if l.ctx.Err() != nil { // Close may not have seen it
			s.Close(goingAway)
		}
	case <-l.ctx.Done():
		s.Close(goingAway)
	case <-timer.C:
		s.Close("the relay is too busy")
	}
}

// admit takes a place among the handshakes. The first call of leave gives it back. cut ends the
// handshake if its place goes to another; it must not block.
func (l *Listener) admit(peer net.Addr, cut func()) (leave func(), ok bool) {
	leave, ok = l.handshakes.Enter(netblock.OfPeer(peer), cut)
	if !ok {
		l.turnedAway.Add(1)
	}
	return leave, ok
}
