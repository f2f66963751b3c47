// Package store keeps what a relay must not lose or shares with other nodes:
// clients, claims on names and ports, policies, settings and access events. It
// is NATS JetStream behind typed methods: a server inside the process by
// default, whose every write is on the disk before it is acknowledged, or an
// external cluster; the same code either way. Reads come from memory, kept
// current by watches. Nothing outside of its folder imports NATS.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/internal/lockfile"
	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/bucket"
	_ "adit/tunnel/relay/store/quiet"
	"adit/tunnel/relay/store/seal"
)

const (
	lockFile     = "relay.lock"
	maxStoreSize = 64 << 30
	maxValue     = 256 << 10
	startWait    = 30 * time.Second
	clusterWait  = 55 * time.Second // it may have just started, too
	lateWait     = 20 * time.Second // for what a relay can start without
)

// Config says where the store is.
type Config struct {
	// Dir is the relay's data folder; it is locked while the store is open.
	Dir string
	// URLs are of an external NATS cluster; if empty, a server runs in this process.
	URLs []string
	// Credentials, CA, Cert and Key are files for an external cluster; each may be empty.
	Credentials, CA, Cert, Key string
	// Replicas is how many servers of an external cluster keep each value. If
	// zero, 3 where the cluster has as many, else 1; never fewer than before.
	Replicas int
	// Secret seals the private keys among the settings, the sinks and the console's
	// accounts, so that whoever reads the cluster's disks or traffic does not have
	// them. Empty seals nothing.
	Secret []byte
	// EventsAge and EventsBytes bound what is kept of access events. If zero,
	// 14 days and 1 GiB.
	EventsAge   time.Duration
	EventsBytes int64
	// Restoring is for Restore: it opens a store, too, in which one was cut short.
	Restoring bool
	// Domain is the relay's, which a migration may need to know.
	Domain string
	// Log may be nil.
	Log *slog.Logger
}

// ErrLocked is returned by Open.
var ErrLocked = errors.New("another relay uses the data folder")

// Store is an open store. All methods may be called from several goroutines.
type Store struct {
	Clients  *Clients
	Claims   *Claims
	Policies *Policies
	// Operators are the console's own.
	Operators *Operators
	Settings  *Settings
	Events    *Events
	Audit     *Audit
	// Usages, Activities, Proofs and Sinks are of clients and their names, and of
	// where events are sent on.
	Usages     *Usages
	Activities *Activities
	Proofs     *Proofs
	Sinks      *Sinks
	// Ended are sign-ins of visitors that count no more.
	Ended *Ended
	// Certificates are those of an ACME authority.
	Certificates *Certificates
	// Nodes are the relay's nodes; nil with a server in this process, which is one alone.
	Nodes *Nodes

	log    *slog.Logger
	lock   *lockfile.Lock
	server *server.Server // nil with an external cluster
	files  server.JetStreamConfig
	healer *healer // of server
	conn   *nats.Conn
	stop   context.CancelFunc
	tables []follower
	heard  *nats.Subscription // of other nodes' notices
	meter  meter
	wrote  atomic.Pointer[func(Change)] // is told of own writes; nil: nobody

	loading sync.Mutex
	byName  map[string]followed // the tables

	migration migration
}

// Open opens the store, makes what is missing in it, and reads it into memory.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{log: cfg.Log, byName: make(map[string]followed)}
	if err := s.open(ctx, cfg); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, cfg Config) (err error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		advice := "make it, or set another data_dir"
		if errors.Is(err, fs.ErrPermission) {
			who := "the user that the relay runs as"
			if id := os.Getuid(); id >= 0 { // no system without numbers
				who += fmt.Sprintf(" (number %d)", id)
			}
			advice = "make it and give it to " + who + ", or set another data_dir"
		}
		return &folderError{cfg.Dir, "cannot be made", advice, err}
	}
	if s.lock, err = lockfile.Take(filepath.Join(cfg.Dir, lockFile)); err != nil {
		switch {
		case errors.Is(err, lockfile.ErrHeld):
			return fmt.Errorf("open data folder %s: %w; end that one, or set another data_dir", cfg.Dir, ErrLocked)
		case errors.Is(err, fs.ErrPermission):
			return &folderError{cfg.Dir, "may not be written by the user that the relay runs as", "give it the right to, or set another data_dir", err}
		}
		return fmt.Errorf("open data folder %s: %w", cfg.Dir, err)
	}
	if len(cfg.URLs) == 0 {
		err = s.embed(cfg)
	} else {
		err = s.connect(cfg)
	}
	if err != nil {
		return err
	}
	js, err := jetstream.New(s.conn)
	if err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	return s.load(ctx, js, cfg)
}

func (s *Store) embed(cfg Config) error {
	opts := &server.Options{
		ServerName: "adit-relay",
		JetStream:  true,
		StoreDir:   filepath.Join(cfg.Dir, "nats"),
		DontListen: true,
		SyncAlways: true,
		NoSigs:     true,
		NoLog:      true,
		MaxPayload: 1 << 20,

		JetStreamMaxMemory: 16 << 20,
		JetStreamMaxStore:  maxStoreSize,
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("set up the store's server: %w", err)
	}
	s.files, s.healer = filesOf(opts), newHealer()
	ns.SetLoggerV2(&serverLog{s.log, s.healer.heard}, false, false, false)
	ns.Start()
	s.server = ns
	if !ns.ReadyForConnections(startWait) {
		return errors.New("the store's server did not start; its files in the data folder may be damaged")
	}
	s.conn, err = nats.Connect("", nats.InProcessServer(ns), nats.Name("adit relay"), nats.MaxReconnects(-1),
		nats.Timeout(startWait)) // it answers as soon as the machine lets it
	if err != nil {
		return fmt.Errorf("connect to the store's server: %w", err)
	}
	return nil
}

func (s *Store) connect(cfg Config) error {
	opts := []nats.Option{
		nats.Name("adit relay"), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.Timeout(5 * time.Second),
		nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2), // a dead server's connection may stay open
		nats.ReconnectBufSize(-1), // a write that was told to have failed is not made minutes later
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				s.log.Warn("store is away", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.log.Debug("store", "error", err) }),
		nats.ReconnectHandler(func(c *nats.Conn) {
			s.log.Info("store is back", "server", c.ConnectedUrlRedacted())
			s.followAnew()
		}),
	}
	if cfg.Credentials != "" {
		opts = append(opts, nats.UserCredentials(cfg.Credentials))
	}
	if cfg.CA != "" {
		opts = append(opts, nats.RootCAs(cfg.CA))
	}
	if cfg.Cert != "" {
		opts = append(opts, nats.ClientCert(cfg.Cert, cfg.Key))
	}
	conn, err := nats.Connect(strings.Join(cfg.URLs, ","), opts...)
	if err != nil {
		hint := ""
		if errors.Is(err, nats.ErrNoServers) {
			hint = "; see that one of them runs, and can be reached from here"
		}
		return fmt.Errorf("connect to NATS at %s: %w%s", redacted(cfg.URLs), err, hint)
	}
	s.conn = conn
	return nil
}

// redacted is a list of URLs without the passwords in them.
func redacted(list []string) string {
	var shown []string
	for _, text := range list {
		u, err := url.Parse(text)
		if err != nil {
			shown = append(shown, "an address that does not parse")
			continue
		}
		shown = append(shown, u.Redacted())
	}
	return strings.Join(shown, ", ")
}

// load makes the buckets and reads them. Settings come first: they hold the
// schema's version.
func (s *Store) load(ctx context.Context, js jetstream.JetStream, cfg Config) error {
	wait := startWait
	if s.server == nil {
		wait = clusterWait
	}
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	life, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	bucketAt := func(ctx context.Context, name string) (jetstream.KeyValue, error) {
		return s.bucket(ctx, js, cfg, name)
	}
	bucket := func(name string) (jetstream.KeyValue, error) { return bucketAt(ctx, name) }
	kv, err := bucket("settings")
	if err != nil {
		return err
	}
	s.Settings = &Settings{kv: kv, seal: seal.New(cfg.Secret)}
	if !cfg.Restoring {
		if err := s.Settings.refuseParted(ctx); err != nil {
			return err
		}
	}
	s.migration = migration{bucketAt, cfg.Domain}
	if err := s.migrate(ctx, s.migration); err != nil {
		return err
	}
	if err := s.loadTables(ctx, life, bucket); err != nil {
		return err
	}
	if s.server != nil {
		s.tables = append(s.tables, s.healer)
		go s.healer.run(life, s, cfg.Dir) // ended by life, waited for by Close
	}
	if s.server == nil {
		if s.Nodes, err = openNodes(ctx, life, s, js, bucket); err != nil {
			return err
		}
		if err := s.listen(); err != nil {
			return err
		}
		s.keepUp(life)
	}
	return s.loadStreams(ctx, js, cfg)
}

// bucket makes the bucket of a name, or finds it.
func (s *Store) bucket(ctx context.Context, js jetstream.JetStream, cfg Config, name string) (kv jetstream.KeyValue, err error) {
	err = bucket.Patiently(ctx, func(ctx context.Context) error {
		replicas, err := s.replicas(ctx, js, "KV_adit_"+name, cfg.Replicas)
		if err != nil {
			return err
		}
		kv, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: "adit_" + name, History: 1, MaxValueSize: maxValue, Storage: jetstream.FileStorage,
			Replicas: replicas, LimitMarkerTTL: bucket.MarkerTTL,
		})
		var failed *jetstream.APIError
		if s.server != nil && errors.As(err, &failed) && failed.Code >= 500 {
			if full := checkRoom(cfg.Dir); full != nil {
				return full
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open store of %s: %w", name, err)
	}
	return kv, nil
}

// loadTables reads what is kept in memory.
func (s *Store) loadTables(ctx, life context.Context, bucket func(string) (jetstream.KeyValue, error)) error {
	clients, err := openTable[Client](ctx, life, s, bucket, "clients")
	if err != nil {
		return err
	}
	s.Clients = newClients(clients)
	claims, err := openTable[Claim](ctx, life, s, bucket, "claims")
	if err != nil {
		return err
	}
	s.Claims = newClaims(claims)
	policies, err := openTable[StoredPolicy](ctx, life, s, bucket, "policies")
	if err != nil {
		return err
	}
	s.Policies = &Policies{policies, s.Claims, s.Settings.seal}
	if err := s.loadClientsTables(ctx, life, bucket); err != nil {
		return err
	}
	operators, err := openTable[json.RawMessage](ctx, life, s, bucket, "operators")
	if err != nil {
		return err
	}
	s.Operators = &Operators{operators, s.Settings.seal}
	if err := s.Operators.sealAll(ctx); err != nil {
		return err
	}
	ended, err := openTable[EndedSignIns](ctx, life, s, bucket, "ended")
	if err != nil {
		return err
	}
	if s.Ended, err = openEnded(ctx, ended); err != nil {
		return err
	}
	certificates, err := bucket("certificates")
	if err != nil {
		return err
	}
	s.Certificates = newCertificates(life, certificates)
	s.tables = append(s.tables, s.Certificates)
	return nil
}

// loadStreams opens what is too long to be kept in memory.
func (s *Store) loadStreams(ctx context.Context, js jetstream.JetStream, cfg Config) error {
	late := func(name string, open func(context.Context, jetstream.JetStream, Config) (jetstream.Stream, error)) *lateStream {
		return &lateStream{open: func(ctx context.Context) (jetstream.Stream, error) {
			copies, err := s.replicas(ctx, js, name, cfg.Replicas)
			if err != nil {
				return nil, err
			}
			cfg := cfg
			cfg.Replicas = copies
			return open(ctx, js, cfg)
		}}
	}
	s.Events = &Events{js: js, conn: s.conn, stream: late(eventsStream, openEvents), took: &s.meter, log: s.log}
	if err := s.openSoon(ctx, "access events", s.Events.stream); err != nil {
		return err
	}
	s.Audit = &Audit{turn: make(chan struct{}, 1), js: js, stream: late(auditStream, openAudit), took: &s.meter, head: audit.Root}
	return s.openSoon(ctx, "audit log", s.Audit.stream)
}

// replicas is how many servers shall keep a stream. If the cluster does not say
// how many do, it is an error: one that has lost a server must not lose copies, too.
func (s *Store) replicas(ctx context.Context, js jetstream.JetStream, stream string, wished int) (int, error) {
	if wished > 0 || s.server != nil {
		return max(wished, 1), nil
	}
	n := 1
	if len(s.conn.Servers()) >= 3 {
		n = 3
	}
	have, err := js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return n, nil
	}
	if err != nil {
		return 0, fmt.Errorf("ask how often %s is kept: %w", stream, err)
	}
	return max(n, have.CachedInfo().Config.Replicas), nil
}

// loadClientsTables opens what is kept of clients beside themselves, and sinks.
func (s *Store) loadClientsTables(ctx, life context.Context, bucket func(string) (jetstream.KeyValue, error)) error {
	usages, err := openTable[Usage](ctx, life, s, bucket, "usage")
	if err != nil {
		return err
	}
	activities, err := openTable[Activity](ctx, life, s, bucket, "activity")
	if err != nil {
		return err
	}
	proofs, err := openTable[Proof](ctx, life, s, bucket, "proofs")
	if err != nil {
		return err
	}
	sinks, err := openTable[StoredSink](ctx, life, s, bucket, "sinks")
	if err != nil {
		return err
	}
	s.Usages, s.Activities, s.Proofs, s.Sinks = &Usages{usages}, &Activities{activities}, &Proofs{proofs}, &Sinks{sinks, s.Settings.seal}
	return errors.Join(s.Sinks.sealAll(ctx), s.Policies.sealAll(ctx))
}

// Close closes the store and unlocks its folder.
func (s *Store) Close() error {
	if s.heard != nil {
		_ = s.heard.Unsubscribe() // the connection's end does as much
	}
	if s.stop != nil {
		s.stop()
	}
	for _, t := range s.tables {
		t.wait()
	}
	if s.conn != nil {
		s.conn.Close()
	}
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}
	if s.lock != nil {
		return s.lock.Release()
	}
	return nil
}

// serverLog lets the embedded server's warnings and errors through.
type serverLog struct {
	log   *slog.Logger
	heard func(text string) // is told of errors
}

func (l *serverLog) Noticef(string, ...any) {}
func (l *serverLog) Debugf(string, ...any)  {}
func (l *serverLog) Tracef(string, ...any)  {}
func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn("store", "detail", fmt.Sprintf(format, v...))
}

func (l *serverLog) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.log.Error("store", "detail", text)
	l.heard(text)
}

func (l *serverLog) Fatalf(format string, v ...any) {
	l.log.Error("store", "detail", fmt.Sprintf(format, v...))
}
