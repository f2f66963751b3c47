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
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/engine"
	"adit/tunnel/relay/store/seal"
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
	engine *engine.Engine
	stop   context.CancelFunc
	work   sync.WaitGroup // until stop
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
	var err error
	s.engine, err = engine.Open(engine.Config{
		Dir: cfg.Dir, URLs: cfg.URLs, Credentials: cfg.Credentials, CA: cfg.CA, Cert: cfg.Cert, Key: cfg.Key,
		Replicas: cfg.Replicas, Back: s.followAnew, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	if err := s.load(ctx, cfg); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// load makes the buckets and reads them. Settings come first: they hold the
// schema's version.
func (s *Store) load(ctx context.Context, cfg Config) error {
	ctx, stop := context.WithTimeout(ctx, s.engine.Patience())
	defer stop()
	life, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	bucket := func(name string) (jetstream.KeyValue, error) { return s.engine.Bucket(ctx, name) }
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
	s.migration = migration{s.engine.Bucket, cfg.Domain}
	if err := s.migrate(ctx, s.migration); err != nil {
		return err
	}
	if err := s.loadTables(ctx, life, bucket); err != nil {
		return err
	}
	if s.engine.Alone() {
		s.work.Go(func() { s.engine.Heal(life, s.followAnew) })
	} else {
		if s.Nodes, err = openNodes(ctx, life, s, bucket); err != nil {
			return err
		}
		if err := s.listen(); err != nil {
			return err
		}
		s.work.Go(func() { s.keepUp(life) })
	}
	return s.loadStreams(ctx, cfg)
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
func (s *Store) loadStreams(ctx context.Context, cfg Config) (err error) {
	js := s.engine.JetStream()
	s.Events = &Events{js: js, took: &s.meter, log: s.log}
	if s.Events.stream, err = s.engine.Stream(ctx, eventsStream, "access events", makeEvents(cfg)); err != nil {
		return err
	}
	s.Audit = &Audit{turn: make(chan struct{}, 1), js: js, took: &s.meter, head: audit.Root}
	s.Audit.stream, err = s.engine.Stream(ctx, auditStream, "audit log", makeAudit)
	return err
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
	s.work.Wait()
	return s.engine.Close()
}
