package relay

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/accesslog"
	"adit/tunnel/relay/activity"
	"adit/tunnel/relay/alerts"
	"adit/tunnel/relay/certs"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/datadir"
	"adit/tunnel/relay/edge"
	"adit/tunnel/relay/far"
	"adit/tunnel/relay/geo"
	"adit/tunnel/relay/ledger"
	"adit/tunnel/relay/membership"
	"adit/tunnel/relay/metrics"
	"adit/tunnel/relay/names"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/outlets"
	"adit/tunnel/relay/policies"
	"adit/tunnel/relay/proof"
	"adit/tunnel/relay/quota"
	"adit/tunnel/relay/roster"
	"adit/tunnel/relay/signin"
	"adit/tunnel/relay/store"
)

// DrainTime is how long streams may finish when the relay ends.
const DrainTime = 30 * time.Second

const (
	openFor = 60 * time.Second // to open the store
	// storeWait is how long the store may take for what nobody waits for.
	storeWait  = 5 * time.Second
	usageFlush = 5 * time.Second
	// visitorGrace is how long visitors wait for an agent whose session was lost: one that
	// is restarted is back within a second or two.
	visitorGrace = 3 * time.Second
)

// Options is what a relay is made of.
type Options struct {
	Config  config.Config
	Version string        // as agents and the console see it
	Log     *slog.Logger  // may be nil
	Drain   time.Duration // if zero, DrainTime

	certs      func(*certs.Config)                                      // tests hurry it; may be nil
	lookupTXT  func(ctx context.Context, name string) ([]string, error) // tests answer it; may be nil
	geoCheck   time.Duration                                            // tests hurry it; may be zero
	usageFlush time.Duration                                            // tests hurry it; may be zero
	// strangerGrace is for tests, too; may be zero.
	strangerGrace time.Duration
	awayGrace     time.Duration // tests hurry it; may be zero
	auditWait     time.Duration // tests hurry it; may be zero
	auditMost     int           // tests have less of it; may be zero
	balance       time.Duration // tests hurry it; may be zero
	halfOpen      time.Duration // tests have more of it; may be zero
	webhookTime   time.Duration // tests have less of it; may be zero
	visitorGrace  time.Duration // tests have none of it, below zero; may be zero
}

// Addrs are the addresses that a relay listens on, ports filled in.
type Addrs struct {
	Tunnel, HTTP, HTTPS, Console string
}

// Relay is a relay with its sockets open.
type Relay struct {
	cfg     config.Config
	opts    Options
	log     *slog.Logger
	node    string // its name
	id      string // of the node
	started time.Time
	waiting int64 // bytes that may wait for readers, in sessions and at the edge
	flows   int   // of all udp endpoints
	tcp     publicPorts
	udp     publicPorts
	local   *certs.Local
	acme    *certs.ACME // nil without [acme]
	file    *certs.File // nil without tls_cert

	store     *store.Store
	authority *link.Authority
	listener  *link.Listener
	edge      *edge.Edge
	page      net.Listener
	handler   *console.Console
	admin     string // the admin token
	setup     string // code for the console's first account; "" if there is one
	access    *accesslog.Log
	geo       *geo.File
	policies  *policies.Table
	book      *policies.Book
	names     names.Rules
	signIn    *signin.Visitors // nil without [[sign_in]]
	accounts  *quota.Accounts
	notes     *activity.Notes // of agents
	sinks     *outlets.Set
	alerts    *alerts.Watch
	ledger    *ledger.Ledger
	records   *proof.Records
	unpublish func()
	shown     daily // to agents
	trail     trail
	mesh      *nodes.Mesh // nil where the relay is one node; so is members
	members   *membership.Members
	far       *far.Agents // empty where the relay is one node
	serving   serving
	doubts    doubts
	coming    coming
	taking    taking
	counts    metrics.Counts
	strangers strangers

	tasks tasks // of short work that events start

	roster roster.Roster[*session] // closed when the relay drains
	trials trials
}

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
	}
	r.cfg.Limits = r.cfg.Limits.Filled()
	r.roster.Limits = roster.Limits{Sessions: r.cfg.Limits.Sessions, PerClient: r.cfg.Limits.SessionsPerClient, Replaced: maxStrangers}
	r.fitMachine()
	r.preparePolicies()
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
	conf, err := r.cfg.Store()
	if err != nil {
		return err
	}
	conf.Log, conf.Founded = r.log, datadir.Founded(r.cfg.DataDir)
	conf.Beginning = !conf.Founded
	if r.store, err = store.Open(ctx, conf); err != nil {
		return err
	}
	if err := r.openAuthority(ctx); err != nil {
		return err
	}
	if err := r.openProofs(ctx); err != nil {
		return err
	}
	r.sinks = outlets.New(outlets.Config{Store: r.store.Sinks, Node: r.node, Private: r.cfg.Sinks.AllowPrivate, Log: r.log})
	if r.ledger, err = ledger.Open(ledger.Config{
		DataDir: r.cfg.DataDir, Node: r.node, Audit: r.store.Audit, Written: r.sinks.Audit, Wait: r.opts.auditWait, Most: r.opts.auditMost, Log: r.log,
	}); err != nil {
		return err
	}
	r.names = names.Rules{
		Domain: r.cfg.Domain, Own: []string{r.cfg.Domain, r.cfg.PublicHost, r.cfg.SignInName()}, SignIn: r.cfg.SignInName(),
		Console: r.cfg.Console.Names(),
		Claims: r.store.Claims, Policed: func(target string) bool { return r.policies.Get(target) != nil },
	}
	r.book = &policies.Book{
		Stored: r.store.Policies, Clients: r.store.Clients, Table: r.policies, Names: r.names, Record: r.ledger.Record, Log: r.log,
	}
	r.notes = activity.New(r.store.Activities, r.node, r.log)
	r.alerts = alerts.New(alerts.Config{Clients: r.attendance, First: r.tellsOfClients, Grace: r.opts.awayGrace, Tell: r.tellOfClient})
	r.access = accesslog.New(r.store.Events, r.log)
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
	if r.signIn, err = r.openSignIn(ctx, public.secure.Addr()); err != nil {
		public.close()
		return err
	}
	resetKey, err := datadir.ResetKey(r.cfg.DataDir)
	if err != nil {
		public.close()
		return err
	}
	host, _, _ := net.SplitHostPort(r.cfg.EdgeHTTPSListen)
	limits := r.cfg.Limits.Edge()
	limits.Memory, limits.UDPFlowsOfAll = r.waiting, r.flows
	limits.HalfOpen, limits.WebhookTime = r.opts.halfOpen, r.opts.webhookTime
	r.edge = edge.New(edge.Config{
		Grace: cmp.Or(r.opts.visitorGrace, visitorGrace), MayBeBack: r.mayBeBack,
		Name: r.cfg.Domain, HTTP: public.plain, HTTPS: public.secure, QUIC: public.quic, ResetKey: resetKey, Agents: public.handOver, AgentProtos: link.Protocols(),
		PortHost: host, HTTPSPort: publicPort(r.cfg.PublicHTTPSPort, public.secure.Addr()), Certificates: certificates, Challenge: challenge,
		Trusted: r.cfg.Trusted(), Proxy: r.cfg.Proxy(), Claimed: r.names.Claimed, Alone: r.names.Alone, Policy: r.policies.Get, SignIn: r.signIn, Record: r.record, PagesDir: r.cfg.PagesDir, Limits: limits, Log: r.log,
	})
	r.accounts = quota.New(quota.Config{Clients: r.store.Clients, Usages: r.store.Usages, Edge: r.edge, Log: r.log})
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
	r.store.Claims.OnChange(r.undoDoubted)
	r.store.Proofs.OnChange(r.proofChanged)
	r.unpublish, err = r.publish()
	return err
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
	if r.mesh != nil {
		r.mesh.Close()
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
