package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"adit/tunnel/relay/edge/backlog"
	"adit/tunnel/relay/edge/exchange"
	"adit/tunnel/relay/edge/h3"
	"adit/tunnel/relay/edge/pages"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/udp"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/edge/webhook"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/signin"
	"adit/tunnel/wire"
)

// Limits bound what visitors may use. A zero field means the default named beside it.
type Limits struct {
	HeaderBytes           int           // of a request's header; 65,536
	HeaderTime            time.Duration // to send a request's header, or for the TLS handshake; 10 s
	IdleTime              time.Duration // between the requests of a connection; 2 min
	StreamIdle            time.Duration // that a connection, or a request in progress, may go without a byte; 2 h
	OriginTime            time.Duration // for an origin's response header; 5 min
	Connections           int           // of all visitors, open at once; unlimited
	ConnectionsPerAddress int           // of one address, which may have 8 times as many requests in progress by HTTP/2 and HTTP/3; 1,024, and at most an eighth of Connections; IPv6 by /64
	Memory                int64         // for data that waits for visitors, and as much again for data that waits for origins, in bytes; 1 GiB
	WebhookTime           time.Duration // for the body of a webhook whose signature has to be checked; 30 s
	HalfOpen              time.Duration // that a visitor who has ended its side may be sent nothing; 2 s
	UDPFlows              int           // of one endpoint; 4,096
	UDPFlowsPerAddress    int           // of one endpoint; 64
	UDPFlowsOfAll         int           // of all endpoints, which only clients with less than their share may exceed; unlimited
	UDPIdle               time.Duration // after which an idle flow is forgotten; 1 min
	UDPAmplification      int           // bytes sent back per byte received from a visitor whose address is unproved; 3
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	defTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&l.HeaderBytes, 64<<10)
	defTime(&l.HeaderTime, 10*time.Second)
	defTime(&l.IdleTime, 2*time.Minute)
	defTime(&l.StreamIdle, 2*time.Hour)
	defTime(&l.OriginTime, 5*time.Minute)
	def(&l.Connections, math.MaxInt32)
	def(&l.ConnectionsPerAddress, 1024)
	l.ConnectionsPerAddress = min(l.ConnectionsPerAddress, max(l.Connections/8, 1))
	if l.Memory == 0 {
		l.Memory = backlog.DefaultMemory
	}
	defTime(&l.WebhookTime, 30*time.Second)
	defTime(&l.HalfOpen, 2*time.Second)
	def(&l.UDPFlows, 4096)
	def(&l.UDPFlowsPerAddress, 64)
	defTime(&l.UDPIdle, time.Minute)
	def(&l.UDPAmplification, 3)
	return l
}

// challengeProto is the protocol by which an ACME authority validates over TLS (RFC 8737). It
// consists of the handshake only.
const challengeProto = "acme-tls/1"

// Config configures an edge. Name, HTTP, HTTPS and Certificates are required.
type Config struct {
	// Name identifies the relay in the header that lists who passed a request on. All nodes of
	// the relay have the same name.
	Name string
	// HTTP and HTTPS are the public listeners; the edge closes them.
	HTTP, HTTPS net.Listener
	// QUIC is the socket for HTTP/3, which serves the visitors of HTTPS; the edge closes it.
	// Nil disables HTTP/3.
	QUIC net.PacketConn
	// ResetKey is the secret with which QUIC tells visitors that their connections ended with
	// the previous process.
	ResetKey [32]byte
	// Grace is how long visitors wait for an agent whose session was lost, for example while
	// it restarts. Zero means not at all.
	Grace time.Duration
	// MayBeBack reports whether a target's agents would be admitted again. May be nil.
	MayBeBack func(target string) bool
	// Agents receives the connections to HTTPS that offer one of AgentProtos, the agents' own
	// protocols, if both share a port. May be nil.
	Agents      func(net.Conn)
	AgentProtos []string
	// PortHost is the address on which tcp and udp ports are opened; empty means all.
	PortHost string
	// HTTPSPort is the public port of HTTPS and HTTP/3, for redirects and Alt-Svc.
	HTTPSPort int
	// Certificates returns the certificate for a handshake, or nil if there is no site of that
	// name.
	Certificates func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Challenge answers an ACME authority's request over HTTP, or returns false. It is called
	// before routing. May be nil, which also disables TLS-ALPN-01.
	Challenge func(http.ResponseWriter, *http.Request) bool
	// Trusted are the load balancers whose PROXY protocol and X-Forwarded headers are
	// believed.
	Trusted []netip.Prefix
	// Proxy says whether load balancers begin their connections with a PROXY header.
	Proxy visitor.ProxyHeader
	// Claimed reports whether a domain, or a wildcard, belongs to a client, whether or not it
	// is being served. May be nil.
	Claimed func(domain string) bool
	// Alone reports whether a name is not served by the wildcard that covers it. May be nil.
	Alone func(domain string) bool
	// Policy returns the policy of a target, or nil. May be nil.
	Policy func(target string) *policy.Policy
	// SignIn lets visitors sign in where a policy requires it. If nil, there is no provider,
	// and such a policy admits nobody.
	SignIn *signin.Visitors
	// Record is called for every visitor's request or connection. It must not block. May be
	// nil.
	Record func(*routing.Endpoint, *routing.Backend, wire.Access)
	// PagesDir holds the operator's pages to show instead of a site; empty means none.
	PagesDir string
	Limits   Limits
	Log      *slog.Logger // may be nil
}

// Edge serves visitors.
type Edge struct {
	cfg    Config
	limits Limits
	log    *slog.Logger

	admission *visitor.Admission
	table     *routing.Table
	forwarder *exchange.Forwarder
	udp       *udp.Ports
	backlog   *backlog.Backlog
	bodies    webhook.Room // of webhooks
	pages     *pages.Set

	feeds   []*visitor.Feed // for HTTP, and for HTTPS
	servers []*http.Server  // the same
	quic    *h3.Server      // nil without HTTP/3
	altSvc  []string        // nil without HTTP/3
	tls     *tls.Config     // for HTTPS
	tickets *tls.Config     // whose ticket keys are for visitors who were asked for a certificate
	served  servedNames
	unknown atomic.Uint64  // requests for a name that no endpoint serves
	ports   sync.WaitGroup // tracks what is served besides the servers, and probes

	// life ends when visitors' connections must end.
	life context.Context
	kill context.CancelFunc
}

// New returns an edge, which serves once Run is called. Tunnels may be attached before that.
func New(cfg Config) *Edge {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Claimed == nil {
		cfg.Claimed = func(string) bool { return false }
	}
	if cfg.Alone == nil {
		cfg.Alone = func(string) bool { return false }
	}
	if cfg.Policy == nil {
		cfg.Policy = func(string) *policy.Policy { return nil }
	}
	if cfg.Record == nil {
		cfg.Record = func(*routing.Endpoint, *routing.Backend, wire.Access) {}
	}
	e := &Edge{cfg: cfg, limits: cfg.Limits.withDefaults(), log: cfg.Log, tickets: new(tls.Config)}
	e.pages = pages.New(cfg.PagesDir, e.log)
	e.pages.Check()
	e.admission = visitor.New(visitor.Config{
		PerAddress: e.limits.ConnectionsPerAddress, Most: e.limits.Connections, HeaderTime: e.limits.HeaderTime,
		Balancers: cfg.Trusted, Proxy: cfg.Proxy, Refuse: e.refuseCrowd, Log: e.log,
	})
	e.backlog = backlog.New(e.limits.Memory)
	e.life, e.kill = context.WithCancel(context.Background())
	e.table = routing.New(routing.Config{
		Alone: cfg.Alone, Open: e.openPort, Bind: e.bind, Go: e.ports.Go, Life: e.life,
		Grace: cfg.Grace, MayBeBack: cfg.MayBeBack, OriginTime: e.limits.OriginTime, Asks: exchange.Asks, Bodies: &e.bodies, Log: e.log,
	})
	e.forwarder = exchange.New(exchange.Config{
		OriginTime: e.limits.OriginTime, TakeOut: e.table.TakeOut, Backlog: e.backlog, Window: windowOf, Secure: e.secured, Explain: e.explain, Log: e.log,
	})
	e.udp = udp.New(udp.Config{
		Flows: e.limits.UDPFlows, FlowsPerAddress: e.limits.UDPFlowsPerAddress, OfAll: e.limits.UDPFlowsOfAll, Idle: e.limits.UDPIdle, Amplification: e.limits.UDPAmplification,
		Enter: e.guardAddr, Record: cfg.Record,
		Keeps: func(ep *routing.Endpoint, a netip.Addr) bool { return e.keeps(ep, nil, policy.Guest{Addr: a}).Allowed },
	})
	for _, secure := range []bool{false, true} {
		ln := cfg.HTTP
		if secure {
			ln = cfg.HTTPS
		}
		e.feeds = append(e.feeds, visitor.NewFeed(ln))
		e.servers = append(e.servers, e.newServer(secure))
	}
	e.tls = e.servers[1].TLSConfig.Clone() // http.Server changes its own copy when it starts serving
	if cfg.QUIC != nil {
		e.quic = h3.New(h3.Config{
			Conn: cfg.QUIC, ResetKey: cfg.ResetKey, Handler: e.servers[1].Handler, HTTP: e.servers[1], Admission: e.admission,
			HeaderSize: e.limits.HeaderBytes, HeaderTime: e.limits.HeaderTime, IdleTime: e.limits.IdleTime, OriginTime: e.limits.OriginTime,
			Certificate: e.certificate3, Ask: e.asking, Life: e.life, Log: e.log,
		})
		e.altSvc = []string{fmt.Sprintf(`h3=":%d"; ma=86400`, cfg.HTTPSPort)}
	}
	return e
}

// suites are the TLS 1.2 cipher suites for visitors: those with forward secrecy and AEAD, as
// RFC 9325, section 4.2, asks. Scanners warn of the CBC suites in crypto/tls (Lucky Thirteen),
// and clients that need them have had no update for ten years.
var suites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

func (e *Edge) newServer(secure bool) *http.Server {
	s := &http.Server{
		Handler:                      &handler{edge: e, secure: secure},
		ReadHeaderTimeout:            e.limits.HeaderTime,
		IdleTimeout:                  e.limits.IdleTime,
		MaxHeaderBytes:               e.limits.HeaderBytes,
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return e.life },
		ConnContext:                  visitor.NewContext,
		ConnState:                    e.admission.Follow,
		ErrorLog:                     slog.NewLogLogger(e.log.Handler(), slog.LevelDebug),
	}
	if secure {
		s.TLSConfig = &tls.Config{
			MinVersion:         tls.VersionTLS12,
			CipherSuites:       suites,
			NextProtos:         []string{"h2", "http/1.1", "http/1.0"},
			GetCertificate:     e.certificate,
			GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return e.asking(e.tls, hello) },
		}
		if e.cfg.Challenge != nil {
			s.TLSConfig.NextProtos = append(s.TLSConfig.NextProtos, challengeProto)
		}
		// The frame size is the default of all clients. The standard library would accept 1
		// MiB, and hold that much for each connection.
		s.HTTP2 = &http.HTTP2Config{
			MaxConcurrentStreams: visitor.StreamsOfConnection, MaxReadFrameSize: 16 << 10, WriteByteTimeout: e.limits.StreamIdle,
			MaxReceiveBufferPerConnection: requestWindow, MaxReceiveBufferPerStream: requestWindow,
		}
	}
	return s
}

// Run serves until ctx ends. It then stops accepting, lets visitors finish for up to drain,
// and closes whatever is left.
func (e *Edge) Run(ctx context.Context, drain time.Duration) error {
	var group errgroup.Group
	for i, s := range e.servers {
		feed := e.feeds[i]
		group.Go(func() error {
			return ignoreClosed(s.Serve(feed))
		})
		group.Go(func() error {
			feed.Serve(ctx, func(conn net.Conn) { e.sort(feed, i == 1, conn) })
			return nil
		})
	}
	group.Go(func() error { e.endIdle(ctx); return nil })
	group.Go(func() error { e.relieveMemory(ctx); return nil })
	if e.quic != nil {
		group.Go(e.quic.Serve)
	}
	group.Go(func() error {
		<-ctx.Done()
		e.shutDown(drain)
		return nil
	})
	return group.Wait()
}

// shutDown stops accepting, closes idle connections, and waits up to drain for requests and
// streams.
func (e *Edge) shutDown(drain time.Duration) {
	for _, f := range e.feeds {
		f.Close()
	}
	if e.quic != nil {
		e.quic.StopAccepting()
	}
	e.table.StopAccepting()
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	var group errgroup.Group
	group.Go(func() error { e.admission.Drain(ctx); return nil })
	for _, s := range e.servers {
		group.Go(func() error {
			if s.Shutdown(ctx) != nil {
				return s.Close()
			}
			return nil
		})
	}
	_ = group.Wait()
	e.admission.Wait(ctx)
	e.kill()
	e.table.Close()
	e.ports.Wait()
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("serve visitors: %w", err)
	}
	return nil
}

// HTTPAddr and HTTPSAddr are the addresses that the edge listens on.
func (e *Edge) HTTPAddr() net.Addr  { return e.cfg.HTTP.Addr() }
func (e *Edge) HTTPSAddr() net.Addr { return e.cfg.HTTPS.Addr() }

// Close closes the listeners of an edge that is not running.
func (e *Edge) Close() error {
	for _, f := range e.feeds {
		f.Close()
	}
	if e.cfg.QUIC != nil {
		e.cfg.QUIC.Close()
	}
	return nil
}
