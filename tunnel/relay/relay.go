package relay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"adit/tunnel/link"
	"adit/tunnel/relay/certs"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/edge"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// DrainTime is how long streams may finish when the relay ends.
const DrainTime = 30 * time.Second

const (
	caFile  = "ca.pem"
	openFor = 60 * time.Second // to open the store
	// linkCertLife is after how long the certificate towards agents is issued anew.
	linkCertLife = 24 * time.Hour
)

// Options is what a relay is made of.
type Options struct {
	Config  Config
	Version string        // as agents and the console see it
	Log     *slog.Logger  // may be nil
	Drain   time.Duration // if zero, DrainTime

	certs      func(*certs.Config)                                      // tests hurry it; may be nil
	lookupTXT  func(ctx context.Context, name string) ([]string, error) // tests answer it; may be nil
	geoCheck   time.Duration                                            // tests hurry it; may be zero
	usageFlush time.Duration                                            // tests hurry it; may be zero
	// strangerGrace is for tests, too; may be zero.
	strangerGrace time.Duration
	auditWait     time.Duration // tests hurry it; may be zero
	balance       time.Duration // tests hurry it; may be zero
	halfOpen      time.Duration // tests have more of it; may be zero
}

// Addrs are the addresses that a relay listens on, ports filled in.
type Addrs struct {
	Tunnel, HTTP, HTTPS, Console string
}

// Relay is a relay with its sockets open.
type Relay struct {
	cfg     Config
	opts    Options
	log     *slog.Logger
	node    string // its name
	id      string // of the node
	started time.Time
	tcp     portRange
	udp     portRange
	local   *edge.LocalCertificates
	acme    *certs.ACME           // nil without [acme]
	file    *edge.FileCertificate // nil without tls_cert

	store     *store.Store
	authority *link.Authority
	listener  *link.Listener
	edge      *edge.Edge
	page      net.Listener
	handler   *console.Console
	admin     string // the admin token
	setup     string // code for the console's first account; "" if there is one
	access    *accessLog
	policies  policies
	accounts  accounts
	seen      seen
	sinks     outlets
	ledger    ledger
	proofs    proofs
	unpublish func()
	members   *members // nil where the relay is one node
	serving   serving
	counts    counts
	strangers strangers

	certMu  sync.Mutex
	cert    tls.Certificate
	certAge time.Time

	tasks sync.WaitGroup // of short work that events start

	mu         sync.Mutex
	ended      bool                // no more tasks
	sessions   map[string]*session // by id
	byInstance map[instanceKey]*session
	away       map[instanceKey]time.Time // when its last session ended
	draining   bool
}

type instanceKey struct{ client, instance string }

// New opens the store and the sockets. What it opened is closed when Run
// returns, or by Close if it is never run.
func New(opts Options) (*Relay, error) {
	if err := opts.Config.Validate(); err != nil {
		return nil, err
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Drain == 0 {
		opts.Drain = DrainTime
	}
	r := &Relay{
		cfg: opts.Config, opts: opts, log: opts.Log, started: time.Now(),
		sessions: make(map[string]*session), byInstance: make(map[instanceKey]*session), away: make(map[instanceKey]time.Time),
	}
	r.cfg.Limits = r.cfg.Limits.filled()
	r.strangers.crowd.PerBlock, r.strangers.crowd.Most = r.cfg.Limits.UnnamedPerAddress, maxStrangers
	r.strangers.crowd.Grace = cmp.Or(r.opts.strangerGrace, strangerGrace)
	if r.node = r.cfg.Nodes.Name; r.node == "" {
		r.node, _ = os.Hostname()
	}
	if r.node == "" {
		r.node = "relay"
	}
	ctx, cancel := context.WithTimeout(context.Background(), openFor)
	defer cancel()
	if err := r.open(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Relay) open(ctx context.Context) error {
	var err error
	conf := r.cfg.store()
	conf.Log = r.log
	if r.cfg.NATS.SecretFile != "" {
		if conf.Secret, err = readSecret(r.cfg.NATS.SecretFile); err != nil {
			return err
		}
	}
	if r.store, err = store.Open(ctx, conf); err != nil {
		return err
	}
	if err := r.openAuthority(ctx); err != nil {
		return err
	}
	if err := r.openProofs(ctx); err != nil {
		return err
	}
	if err := r.ledger.open(r.cfg.DataDir); err != nil {
		return err
	}
	r.access = newAccessLog(r.store.Events, &r.counts.dropped, r.log)
	public, err := r.openSockets()
	if err != nil {
		return err
	}
	r.listener = public.agents
	r.readPorts()
	certificates, err := r.openCertificates(ctx, public.plain.Addr(), public.secure.Addr())
	if err != nil {
		public.close()
		return err
	}
	var challenge func(http.ResponseWriter, *http.Request) bool
	if r.acme != nil {
		challenge = r.acme.HandleHTTP
	}
	var trusted []netip.Prefix
	for _, text := range r.cfg.TrustedProxies {
		p, _ := parsePrefix(text)
		trusted = append(trusted, p)
	}
	host, _, _ := net.SplitHostPort(r.cfg.EdgeHTTPSListen)
	limits := r.cfg.Limits.edge()
	limits.HalfOpen = r.opts.halfOpen
	r.edge = edge.New(edge.Config{
		HTTP: public.plain, HTTPS: public.secure, QUIC: public.quic, Agents: public.handOver, AgentProtos: link.Protocols(),
		PortHost: host, HTTPSPort: publicPort(r.cfg.PublicHTTPSPort, public.secure.Addr()), Certificates: certificates, Challenge: challenge,
		Trusted: trusted, Proxy: proxyHeaders[r.cfg.ProxyProtocol], Claimed: r.claimed, Policy: r.policies.get, Record: r.record, PagesDir: r.cfg.PagesDir, Limits: limits, Log: r.log,
	})
	if r.page, err = listen("console_listen", r.cfg.ConsoleListen); err != nil {
		return err
	}
	if err := r.openConsole(ctx); err != nil {
		return err
	}
	if err := r.openPolicies(); err != nil {
		return err
	}
	if err := r.openNodes(); err != nil {
		return err
	}
	r.store.Clients.OnChange(r.clientChanged)
	r.store.Claims.OnChange(r.claimChanged)
	r.store.Proofs.OnChange(r.proofChanged)
	r.unpublish, err = r.publish()
	return err
}

// readSecret reads what seals the keys that nodes share.
func readSecret(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fileError("nats.secret_file", path, err)
	}
	secret := bytes.TrimSpace(data)
	if len(secret) < 16 {
		return nil, fmt.Errorf("nats.secret_file: %s has fewer than 16 bytes; `openssl rand -hex 32` makes one", path)
	}
	return secret, nil
}

// store says where a relay's store is.
func (c Config) store() store.Config {
	return store.Config{
		Dir: c.DataDir, URLs: c.NATS.URLs, Credentials: c.NATS.Credentials,
		CA: c.NATS.CA, Cert: c.NATS.Cert, Key: c.NATS.Key, Replicas: c.NATS.Replicas,
		Domain:    c.Domain,
		EventsAge: time.Duration(c.Limits.AccessDays) * 24 * time.Hour, EventsBytes: c.Limits.AccessBytes,
	}
}

func listen(key, addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError(key, addr, err)
	}
	return ln, nil
}

func portOf(a net.Addr) int {
	ap, _ := netip.ParseAddrPort(a.String())
	return int(ap.Port())
}

// publicPort is the port at which others find what listens at a.
func publicPort(set int, a net.Addr) int {
	if set != 0 {
		return set
	}
	return portOf(a)
}

// edge gives the limits that the edge holds. Durations are validated.
func (l Limits) edge() edge.Limits {
	d := func(text string) time.Duration { v, _ := time.ParseDuration(text); return v }
	return edge.Limits{
		HeaderBytes: l.HeaderBytes, HeaderTime: d(l.HeaderTime), IdleTime: d(l.IdleTime), StreamIdle: d(l.StreamIdle),
		OriginTime: d(l.OriginTime), ConnectionsPerAddress: l.ConnectionsPerAddress,
		UDPFlows: l.UDPFlows, UDPIdle: d(l.UDPIdle), UDPAmplification: l.UDPAmplification,
	}
}

func (r *Relay) openAuthority(ctx context.Context) error {
	text, err := r.store.Settings.Once(ctx, store.SettingAuthority, func() ([]byte, error) {
		a, err := link.NewAuthority()
		if err != nil {
			return nil, err
		}
		return a.MarshalPEM()
	})
	if err != nil {
		return err
	}
	if r.authority, err = link.ParseAuthority(text); err != nil {
		return fmt.Errorf("read the relay's authority from the store: %w", err)
	}
	_, err = r.linkCertificate()
	return err
}

// linkCertificate is what agents are shown; it is issued anew every day.
func (r *Relay) linkCertificate() (*tls.Certificate, error) {
	r.certMu.Lock()
	defer r.certMu.Unlock()
	if now := time.Now(); now.Sub(r.certAge) > linkCertLife {
		cert, err := r.authority.Issue(r.publicHost())
		if err != nil {
			return nil, err
		}
		r.cert, r.certAge = cert, now
	}
	cert := r.cert
	return &cert, nil
}

func (r *Relay) publicHost() string {
	if r.cfg.PublicHost != "" {
		return r.cfg.PublicHost
	}
	return r.cfg.Domain
}

// tunnelAddr is where agents find the relay.
func (r *Relay) tunnelAddr() string {
	return net.JoinHostPort(r.publicHost(), strconv.Itoa(publicPort(r.cfg.PublicTunnelPort, r.listener.Addr())))
}

func (r *Relay) openCertificates(ctx context.Context, plain, secure net.Addr) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	ca, err := r.store.Settings.Once(ctx, store.SettingVisitorCA, func() ([]byte, error) { return edge.NewVisitorCA(r.cfg.Domain) })
	if err != nil {
		return nil, err
	}
	if r.local, err = edge.NewLocalCertificates(ca, r.claimed); err != nil {
		return nil, err
	}
	if err := os.WriteFile(r.CAFile(), r.local.CA(), 0o644); err != nil {
		return nil, fmt.Errorf("write the visitors' authority: %w", err)
	}
	get := r.local.Get
	if err := r.openACME(plain, secure); err != nil {
		return nil, err
	}
	if r.acme != nil {
		get = r.acme.Get
	}
	if r.cfg.TLSCert == "" {
		return get, nil
	}
	if r.file, err = edge.NewFileCertificate(r.cfg.TLSCert, r.cfg.TLSKey, get); err != nil {
		return nil, r.cfg.certificateError(err)
	}
	if fault := r.file.Fault(r.cfg.Domain, r.acme != nil, time.Now()); fault != "" {
		r.log.Warn("browsers do not take the certificate of tls_cert", "reason", fault, "file", r.cfg.TLSCert)
	}
	return r.file.Get, nil
}

// CAFile is the certificate that visitors must trust where the relay has no
// public one.
func (r *Relay) CAFile() string { return filepath.Join(r.cfg.DataDir, caFile) }

// claimed reports whether a domain is a client's.
func (r *Relay) claimed(domain string) bool {
	_, ok := r.store.Claims.Get(store.TargetDomain(domain))
	return ok
}

// Addrs returns where the relay listens.
func (r *Relay) Addrs() Addrs {
	return Addrs{
		Tunnel: r.listener.Addr().String(), HTTP: r.edge.HTTPAddr().String(),
		HTTPS: r.edge.HTTPSAddr().String(), Console: r.page.Addr().String(),
	}
}

// AdminToken is the secret of the console and the admin API.
func (r *Relay) AdminToken() string { return r.admin }

// Close closes what New opened, if Run was never called.
func (r *Relay) Close() error {
	if r.unpublish != nil {
		r.unpublish()
	}
	if r.listener != nil {
		r.listener.Close()
	}
	if r.members != nil {
		r.members.mesh.Close()
	}
	if r.edge != nil {
		r.edge.Close()
	}
	if r.page != nil {
		r.page.Close()
	}
	if r.acme != nil {
		r.acme.Close()
	}
	if r.store != nil {
		return r.store.Close()
	}
	return nil
}

// Run serves until ctx ends. Then it stops accepting, tells agents to move on,
// lets streams finish, and closes everything.
func (r *Relay) Run(ctx context.Context) error {
	// life outlasts ctx by the time of the drain.
	life, end := context.WithCancel(context.Background())
	defer end()
	// visiting ends when visitors are to be turned away; the other nodes are
	// there for a little more.
	visiting, turnAway := context.WithCancel(context.Background())
	defer turnAway()
	group, failed := errgroup.WithContext(ctx)
	group.Go(func() error { return r.acceptSessions(failed, life) })
	group.Go(func() error {
		if r.members != nil {
			r.members.meet(visiting)
		}
		err := r.edge.Run(visiting, r.opts.Drain)
		if r.members != nil { // visitors of other nodes, too
			idle, cancel := context.WithTimeout(context.Background(), r.opts.Drain)
			r.members.mesh.Idle(idle)
			cancel()
		}
		end() // visitors have ended: sessions may
		return err
	})
	if r.members != nil {
		group.Go(func() error { return r.members.run(life) })
	}
	group.Go(func() error { return r.serveConsole(failed) })
	group.Go(func() error { return r.handler.Run(life) })
	group.Go(func() error { return r.access.run(life) })
	group.Go(func() error { r.sweep(life); return nil })
	group.Go(func() error { r.watchGeo(life); return nil })
	if r.file != nil {
		group.Go(func() error { r.file.Run(life, r.log); return nil })
	}
	group.Go(func() error { r.watchHours(life); return nil })
	group.Go(func() error { r.watchExpiry(life); return nil })
	group.Go(func() error { r.accounts.run(life, r); return nil })
	group.Go(func() error { r.runSinks(life); return nil })
	group.Go(func() error { r.runLedger(life); return nil })
	group.Go(func() error {
		<-failed.Done()
		r.drain()
		if r.members != nil {
			r.members.moveOff(life)
		}
		turnAway()
		return nil
	})
	err := group.Wait()
	r.endTasks()
	return errors.Join(err, r.Close())
}

// acceptSessions takes sessions until life ends; from the end of ctx on it
// turns new ones away.
func (r *Relay) acceptSessions(ctx, life context.Context) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		s, err := r.listener.Accept(life)
		switch {
		case life.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("accept agents: %w", err)
		case ctx.Err() != nil:
			serving.Go(func() { s.Close("the relay is shutting down") })
		default:
			serving.Go(func() { r.serve(life, s) })
		}
	}
}

// task runs short work that an event starts, unless the relay has ended.
func (r *Relay) task(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.tasks.Go(f)
	}
}

func (r *Relay) endTasks() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.tasks.Wait()
}

// drain tells every agent to move on.
func (r *Relay) drain() {
	r.mu.Lock()
	r.draining = true
	list := make([]*session, 0, len(r.sessions))
	for _, s := range r.sessions {
		list = append(list, s)
	}
	r.mu.Unlock()
	for _, s := range list {
		e := wire.Event{Type: wire.EventDrain, Reason: "the relay is shutting down"}
		if r.members != nil {
			e.Nodes = r.members.forAgent()
			e.Addresses = addresses(e.Nodes)
		}
		s.tell(e)
	}
}

func (r *Relay) isDraining() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.draining
}

// shuttingDown is the answer of a relay that drains to who wants more of it.
func shuttingDown() *wire.Problem {
	return &wire.Problem{Code: wire.CodeUnavailable, Message: "the relay is shutting down"}
}
