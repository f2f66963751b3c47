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

// Limits bound what visitors may take. A zero field has the default named.
type Limits struct {
	HeaderBytes           int           // of a request; 65,536
	HeaderTime            time.Duration // to send a request's header, or the TLS handshake; 10 s
	IdleTime              time.Duration // between requests of a connection; 2 min
	StreamIdle            time.Duration // of a connection, or of a request under way, without a byte; 2 h
	OriginTime            time.Duration // for an origin's response header; 5 min
	Connections           int           // of all visitors, open at once; any number
	ConnectionsPerAddress int           // of them, and an eighth of its requests by HTTP/2 and HTTP/3; 1,024, and at most an eighth of Connections; IPv6 by /64
	Memory                int64         // for what waits for visitors and what waits for origins, bytes each; 1 GiB
	WebhookTime           time.Duration // for the body of a webhook, whose signature is to be checked; 30 s
	HalfOpen              time.Duration // for a visitor who sends no more, without a byte to it; 2 s
	UDPFlows              int           // of one endpoint; 4,096
	UDPFlowsPerAddress    int           // of one endpoint; 64
	UDPFlowsOfAll         int           // of all endpoints, as far as no client has less than its part; any number
	UDPIdle               time.Duration // after which a flow is forgotten; 1 min
	UDPAmplification      int           // bytes back for a byte of a visitor not yet proved; 3
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

// challengeProto is how an ACME authority asks over TLS (RFC 8737). It ends at
// the handshake.
const challengeProto = "acme-tls/1"

// Config is what an edge works with. Name, HTTP, HTTPS and Certificates are required.
type Config struct {
	// Name is what the relay is called where requests tell by whom they were passed
	// on; all its nodes have one.
	Name string
	// HTTP and HTTPS are the public listeners; the edge closes them.
	HTTP, HTTPS net.Listener
	// QUIC is where HTTP/3 is spoken, for the visitors of HTTPS; the edge closes
	// it. Nil: nowhere.
	QUIC net.PacketConn
	// ResetKey is the secret by which QUIC tells visitors that their connections went
	// with the process before this one.
	ResetKey [32]byte
	// Grace is how long visitors wait for an agent whose session was lost, as while it is
	// restarted; 0: not at all.
	Grace time.Duration
	// MayBeBack reports whether a target's agents are let in. May be nil.
	MayBeBack func(target string) bool
	// Agents is given connections of HTTPS that offer one of AgentProtos, the
	// agents' own protocols, where both have one port. May be nil.
	Agents      func(net.Conn)
	AgentProtos []string
	// PortHost is the address that tcp and udp ports are opened on; empty: all.
	PortHost string
	// HTTPSPort is the public port of HTTPS and HTTP/3, for redirects and Alt-Svc.
	HTTPSPort int
	// Certificates returns the certificate for a handshake; nil: there is no site of the
	// name.
	Certificates func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Challenge answers an ACME authority's question on HTTP, or returns false.
	// It goes before routing. May be nil; without it TLS-ALPN-01 is not offered.
	Challenge func(http.ResponseWriter, *http.Request) bool
	// Trusted are load balancers: their PROXY protocol and X-Forwarded headers count.
	Trusted []netip.Prefix
	// Proxy says whether connections of load balancers begin with a PROXY header.
	Proxy visitor.ProxyHeader
	// Claimed reports whether a domain, or a wildcard, is some client's, running or
	// not. May be nil.
	Claimed func(domain string) bool
	// Alone reports whether a name is not to be led by the wildcard that it is one
	// of. May be nil.
	Alone func(domain string) bool
	// Policy returns the policy of a target, or nil. May be nil.
	Policy func(target string) *policy.Policy
	// SignIn has visitors sign in where a policy asks for it. May be nil: there is
	// no provider, and such a policy lets nobody in.
	SignIn *signin.Visitors
	// Record is told of every visitor's request or connection. It must not wait. May be nil.
	Record func(*routing.Endpoint, *routing.Backend, wire.Access)
	// PagesDir has the operator's pages to show instead of a site; empty: none.
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

	feeds   []*visitor.Feed // of HTTP, and of HTTPS
	servers []*http.Server  // the same
	quic    *h3.Server      // nil without HTTP/3
	altSvc  []string        // nil without HTTP/3
	tls     *tls.Config     // of HTTPS
	tickets *tls.Config     // whose keys those have who were asked for a certificate
	served  servedNames
	unknown atomic.Uint64  // requests for a name that no endpoint serves
	ports   sync.WaitGroup // of what is served beside the servers, and of probes

	// life ends when visitors' connections must end.
	life context.Context
	kill context.CancelFunc
}

// New returns an edge that serves when it is run; tunnels may be attached at once.
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
	e.tls = e.servers[1].TLSConfig.Clone() // http.Server changes its own as it begins to serve
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

// suites are those of TLS 1.2 for visitors: with forward secrecy and AEAD, as RFC 9325,
// section 4.2, asks. Those of crypto/tls that have CBC are what scanners warn of (Lucky
// Thirteen), and who needs them has had no update for ten years.
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
		// A visitor's frames are as long as every client's are by themselves: the
		// standard library takes 1 MiB, and holds that much for each connection.
		s.HTTP2 = &http.HTTP2Config{
			MaxConcurrentStreams: visitor.StreamsOfConnection, MaxReadFrameSize: 16 << 10, WriteByteTimeout: e.limits.StreamIdle,
			MaxReceiveBufferPerConnection: requestWindow, MaxReceiveBufferPerStream: requestWindow,
		}
	}
	return s
}

// Run serves until ctx ends, then stops accepting, lets visitors finish for up
// to drain, and ends what is left.
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

// shutDown stops accepting, ends the connections that ask for nothing, and
// waits for requests and streams up to drain.
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

// HTTPAddr and HTTPSAddr are where the edge listens.
func (e *Edge) HTTPAddr() net.Addr  { return e.cfg.HTTP.Addr() }
func (e *Edge) HTTPSAddr() net.Addr { return e.cfg.HTTPS.Addr() }

// Close closes the listeners of an edge that is not run, or is no longer.
func (e *Edge) Close() error {
	for _, f := range e.feeds {
		f.Close()
	}
	if e.cfg.QUIC != nil {
		e.cfg.QUIC.Close()
	}
	return nil
}
