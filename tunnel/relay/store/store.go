// Package store keeps what a relay must not lose or shares with other nodes: clients, claims
// on names and ports, policies, settings and access events. It wraps NATS JetStream in typed
// methods. The server runs inside the process by default, with every write on disk before it
// is acknowledged, or is an external cluster; the code is the same for both. Reads are served
// from memory, which watches keep current. Nothing outside this directory imports NATS.
package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"adit/tunnel/relay/store/auditlog"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/certificates"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/engine"
	"adit/tunnel/relay/store/events"
	"adit/tunnel/relay/store/leader"
	"adit/tunnel/relay/store/seal"
	"adit/tunnel/relay/store/table"
)

// Config says where the store is.
type Config struct {
	// Dir is the relay's data folder; it is locked while the store is open.
	Dir string
	// URLs are the URLs of an external NATS cluster. If empty, a server runs in this process.
	URLs []string
	// Credentials, CA, Cert and Key are files for connecting to an external cluster; each may
	// be empty.
	Credentials, CA, Cert, Key string
	// Replicas is how many servers of an external cluster keep each value. If zero, 3 if the
	// cluster has that many servers, else 1, but never fewer than before.
	Replicas int
	// Secret seals the private keys among the settings, the sinks, and the console's accounts,
	// so that someone who reads the cluster's disks or traffic does not obtain them. If empty,
	// nothing is sealed.
	Secret []byte
	// EventsAge and EventsBytes limit the access events that are kept. If zero, 14 days and 1
	// GiB.
	EventsAge   time.Duration
	EventsBytes int64
	// Restoring is set to call Restore. It allows opening a store in which a restore was
	// interrupted.
	Restoring bool
	// Founded says that the data folder belongs to a node whose relay was in the store. If the
	// store has none, it has lost the relay, and Open fails.
	Founded bool
	// Beginning says that a new relay is started if the store has none. Open then fails if
	// other nodes of a relay are running all the same.
	Beginning bool
	// Domain is the relay's domain, which migrations may need.
	Domain string
	// Log may be nil.
	Log *slog.Logger
}

// Store is an open store. Its methods are safe for concurrent use.
type Store struct {
	Clients  *Clients
	Claims   *claims.Registry
	Policies *Policies
	// Operators holds the console's data.
	Operators *Operators
	Settings  *Settings
	Events    *events.Log
	Audit     *auditlog.Log
	// Usages, Activities and Proofs hold data about clients and their names. Sinks says where
	// events are forwarded.
	Usages     *Usages
	Activities *Activities
	Proofs     *Proofs
	Sinks      *Sinks
	// Ended holds the visitors' sign-ins that are no longer valid.
	Ended *Ended
	// Certificates holds the certificates of an ACME authority.
	Certificates *certificates.Storage
	// Nodes lists the relay's nodes. It is nil with a server in this process, since there is
	// only one node then.
	Nodes *Nodes

	log    *slog.Logger
	engine *engine.Engine
	tables *table.Set
	took   bucket.Meter
	stop   context.CancelFunc
	work   sync.WaitGroup // until stop is called

	migration migration
}

// Open opens the store, creates what is missing, and reads it into memory.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{log: cfg.Log}
	var err error
	s.engine, err = engine.Open(engine.Config{
		Dir: cfg.Dir, URLs: cfg.URLs, Credentials: cfg.Credentials, CA: cfg.CA, Cert: cfg.Cert, Key: cfg.Key,
		Replicas: cfg.Replicas, Log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	s.tables = table.NewSet(table.Config{
		Engine: s.engine, Urgent: []string{"clients", "claims", "policies"}, Living: []string{"nodes"}, Took: &s.took, Log: cfg.Log,
	})
	if err := s.load(ctx, cfg); err != nil {
		err = s.unread(s.engine.Fault(err), cfg)
		s.Close()
		return nil, err
	}
	return s, nil
}

// load opens the buckets and reads them, starting with the settings, which hold the schema
// version.
func (s *Store) load(ctx context.Context, cfg Config) error {
	ctx, stop := context.WithTimeout(ctx, s.engine.Patience())
	defer stop()
	life, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	kv, err := s.engine.Bucket(ctx, "settings")
	if err != nil {
		return err
	}
	s.Settings = &Settings{kv: kv, seal: seal.New(cfg.Secret)}
	if !cfg.Restoring {
		if err := s.Settings.refuseParted(ctx); err != nil {
			return err
		}
	}
	lead := leader.Leader{Conn: s.engine.JetStream().Conn(), Bucket: kv.Bucket()}
	switch {
	case cfg.Founded:
		err = s.Settings.refuseEmptied(ctx, lead, cfg)
	case cfg.Beginning && !s.engine.Alone():
		err = s.refuseBeside(ctx, lead)
	}
	if err != nil {
		return err
	}
	if !s.engine.Alone() && !cfg.Restoring {
		if err := s.refuseWithoutParts(ctx); err != nil {
			return err
		}
	}
	s.migration = migration{s.engine.Bucket, cfg.Domain}
	if err := s.migration.run(ctx, s.Settings, s.log); err != nil {
		return err
	}
	if !s.engine.Alone() && !cfg.Restoring {
		if err := s.identify(ctx, lead); err != nil {
			return err
		}
	}
	if err := s.loadTables(ctx, life); err != nil {
		return err
	}
	if !s.engine.Alone() && !cfg.Restoring {
		if err := s.noteParts(ctx); err != nil { // fails, for example, if there is no room
			s.log.Warn("what parts the store has cannot be noted", "error", err)
		}
	}
	if s.engine.Alone() {
		if err := s.refuseDamaged(ctx, life, cfg); err != nil {
			return err
		}
	}
	s.work.Go(func() { s.engine.Run(life, s.tables.FollowAnew) })
	if !s.engine.Alone() {
		nodes, err := table.Open[Node](ctx, life, s.tables, "nodes")
		if err != nil {
			return err
		}
		if s.Nodes, err = openNodes(nodes, s.engine.JetStream().Conn()); err != nil {
			return err
		}
		s.work.Go(func() { s.Nodes.announced.heed(life, s.engine.JetStream().Conn()) })
		s.work.Go(func() { s.tables.KeepUp(life) })
	}
	if err := s.loadStreams(ctx, cfg); err != nil {
		return err
	}
	if s.engine.Alone() {
		return nil
	}
	return s.tables.Listen() // last: a node that starts a relay takes a listener for one of its nodes
}

// identify determines the identity of the store, and gives it one if it has none.
func (s *Store) identify(ctx context.Context, l leader.Leader) error {
	id, err := s.Settings.Once(ctx, settingStore, func() ([]byte, error) { return []byte(rand.Text()), nil })
	if err != nil {
		return err
	}
	s.tables.Of(string(id), func(ctx context.Context) (string, error) {
		w, _, err := l.Get(ctx, settingStore)
		return string(w.Value), err
	})
	return nil
}

// loadTables reads what is kept in memory.
func (s *Store) loadTables(ctx, life context.Context) error {
	clients, err := table.Open[Client](ctx, life, s.tables, "clients")
	if err != nil {
		return err
	}
	s.Clients = newClients(clients)
	claimed, err := table.Open[claims.Claim](ctx, life, s.tables, "claims")
	if err != nil {
		return err
	}
	s.Claims = claims.New(claimed)
	policies, err := table.Open[StoredPolicy](ctx, life, s.tables, "policies")
	if err != nil {
		return err
	}
	s.Policies = &Policies{policies, s.Claims, s.Settings.seal}
	if err := s.loadClientsTables(ctx, life); err != nil {
		return err
	}
	operators, err := table.Open[json.RawMessage](ctx, life, s.tables, "operators")
	if err != nil {
		return err
	}
	s.Operators = &Operators{operators, s.Settings.seal}
	if err := s.Operators.sealAll(ctx); err != nil {
		return err
	}
	ended, err := table.Open[EndedSignIns](ctx, life, s.tables, "ended")
	if err != nil {
		return err
	}
	if s.Ended, err = openEnded(ctx, ended); err != nil {
		return err
	}
	kv, err := s.engine.Bucket(ctx, "certificates")
	if err != nil {
		return err
	}
	s.Certificates = certificates.New(life, kv)
	return nil
}

// loadStreams opens what is too large to keep in memory.
func (s *Store) loadStreams(ctx context.Context, cfg Config) (err error) {
	s.Events, err = events.Open(ctx, s.engine, events.Config{Age: cfg.EventsAge, Bytes: cfg.EventsBytes, Took: &s.took, Log: s.log})
	if err != nil {
		return err
	}
	s.Audit, err = auditlog.Open(ctx, s.engine, &s.took)
	return err
}

// loadClientsTables opens the tables with data about clients, and the sinks.
func (s *Store) loadClientsTables(ctx, life context.Context) error {
	usages, err := table.Open[Usage](ctx, life, s.tables, "usage")
	if err != nil {
		return err
	}
	activities, err := table.Open[Activity](ctx, life, s.tables, "activity")
	if err != nil {
		return err
	}
	proofs, err := table.Open[Proof](ctx, life, s.tables, "proofs")
	if err != nil {
		return err
	}
	sinks, err := table.Open[StoredSink](ctx, life, s.tables, "sinks")
	if err != nil {
		return err
	}
	s.Usages, s.Activities, s.Proofs, s.Sinks = &Usages{usages}, &Activities{activities}, &Proofs{proofs}, &Sinks{sinks, s.Settings.seal}
	return errors.Join(s.Sinks.sealAll(ctx), s.Policies.sealAll(ctx))
}

// Close closes the store and unlocks its folder.
func (s *Store) Close() error {
	if s.stop != nil {
		s.stop()
	}
	s.tables.Close()
	if s.Certificates != nil {
		s.Certificates.Wait()
	}
	s.work.Wait()
	return s.engine.Close()
}

// Writes returns how many writes there have been since the store was opened, and how long they
// took.
func (s *Store) Writes() bucket.Writes { return s.took.Written() }

// Connected reports whether the store can currently be reached.
func (s *Store) Connected() bool { return s.engine.Connected() }

// Condition describes the state of the store.
type Condition = table.Condition

// Conditions of a store.
const (
	Here   = table.Here
	Silent = table.Silent
	Full   = table.Full
	Lost   = table.Lost
	Away   = Condition("away") // it cannot be reached
)

// Conditions lists all conditions.
var Conditions = []Condition{Here, Away, Silent, Full, Lost}

// Condition returns the current state of the store, as far as this node knows. With a server
// in this process it is Here or Full.
func (s *Store) Condition() Condition {
	if s.engine.Full() {
		return Full
	}
	if c := s.tables.Condition(); c == Lost || s.Connected() {
		return c
	}
	return Away
}

// ID identifies the store that nodes share. Revisions are only meaningful within one store; a
// store restored from a backup has another ID. It is empty if the store belongs to this node
// alone.
func (s *Store) ID() string { return s.tables.ID() }

// OnWrite makes the store call f for this node's own writes that others should learn of at
// once, after they have been acknowledged. f must not block.
func (s *Store) OnWrite(f func(table.Change)) { s.tables.OnWrite(f) }

// Told takes in what another node has written to this store. Revisions decide: what is already
// known, or older than what is known, has no effect.
func (s *Store) Told(c table.Change) { s.tables.Told(c) }
