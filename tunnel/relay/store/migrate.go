package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/claims"
)

// SchemaVersion is the version of the stored data's format. A store with a newer version is
// refused, so that an old program never damages it. A store with an older version is migrated
// when it is opened.
const SchemaVersion = 2

// migration takes the store from one version to the next. Several nodes may run it at the same
// time, and it may be interrupted and started again; every step must allow for that.
type migration struct {
	bucket func(ctx context.Context, name string) (jetstream.KeyValue, error)
	domain string // the relay's domain
}

// migrations are the steps, by the version that they start from.
var migrations = map[int]func(context.Context, migration) error{
	1: proveWhatIsClaimed,
}

// run migrates the store to SchemaVersion.
func (m migration) run(ctx context.Context, s *Settings, log *slog.Logger) error {
	for {
		entry, err := bucket.Read(ctx, s.kv, settingSchema)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			if err := s.setSchema(ctx, SchemaVersion, 0); !errors.Is(err, bucket.ErrConflict) {
				return err
			}
			continue // another node was first
		}
		if err != nil {
			return fmt.Errorf("read the store's schema version: %w", err)
		}
		var version int
		if err := json.Unmarshal(entry.Value(), &version); err != nil || version < 1 {
			return fmt.Errorf("read the store's schema version: it is %q", entry.Value())
		}
		if version > SchemaVersion {
			return fmt.Errorf("the store is of a newer adit (schema %d, this one knows %d); update adit", version, SchemaVersion)
		}
		if version == SchemaVersion {
			return nil
		}
		err = migrations[version](ctx, m)
		if bucket.IsAway(err) && bucket.Rested(ctx) {
			continue
		}
		if err != nil {
			return fmt.Errorf("bring the store from schema %d to %d: %w", version, version+1, err)
		}
		if err := s.setSchema(ctx, version+1, entry.Revision()); err != nil && !errors.Is(err, bucket.ErrConflict) {
			return err
		}
		log.Info("store migrated", "schema", version+1)
	}
}

// setSchema writes the version if the previous one still has the revision rev; 0 means that
// there was none.
func (s *Settings) setSchema(ctx context.Context, version int, rev uint64) error {
	text, err := json.Marshal(version)
	if err != nil {
		return err
	}
	_, _, err = bucket.Again(ctx, func(ctx context.Context) (uint64, error) {
		if rev == 0 {
			return s.kv.Create(ctx, settingSchema, text)
		}
		return s.kv.Update(ctx, settingSchema, text, rev)
	})
	if bucket.IsConflict(err) {
		return bucket.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("store the schema version: %w", err)
	}
	return nil
}

// proveWhatIsClaimed lets clients keep the names outside the relay's domain that they had
// before proofs were required.
func proveWhatIsClaimed(ctx context.Context, m migration) error {
	claimed, err := m.bucket(ctx, "claims")
	if err != nil {
		return err
	}
	proofs, err := m.bucket(ctx, "proofs")
	if err != nil {
		return err
	}
	keys, err := bucket.Keys(ctx, claimed, jetstream.AllKeys)
	if err != nil {
		return err
	}
	var names []string
	for _, key := range keys {
		if name := claims.DomainOf(key); name != "" && name != m.domain && (m.domain == "" || !strings.HasSuffix(name, "."+m.domain)) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		entry, err := claimed.Get(ctx, claims.TargetDomain(name))
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		var c claims.Claim
		if err := json.Unmarshal(entry.Value(), &c); err != nil {
			return fmt.Errorf("read the claim of %s: %w", name, err)
		}
		text, err := json.Marshal(Proof{Domain: name, ClientID: c.ClientID, Proved: time.Now().UTC(), By: ProvedByUpgrade})
		if err != nil {
			return err
		}
		if _, err := proofs.Create(ctx, name, text); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
	}
	return nil
}
