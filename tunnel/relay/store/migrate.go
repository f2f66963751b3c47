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

// SchemaVersion is of the shape of what is stored. A store of a newer shape is
// refused, so that an old program never harms it; one of an older shape is
// brought to this one when it is opened.
const SchemaVersion = 2

// migration brings a store from one version to the next. Several nodes may do
// so at once, and one may be interrupted and begin again: a step must bear that.
type migration struct {
	bucket func(ctx context.Context, name string) (jetstream.KeyValue, error)
	domain string // the relay's
}

// migrations are the steps by the version that they begin with.
var migrations = map[int]func(context.Context, migration) error{
	1: proveWhatIsClaimed,
}

// run brings the store of these settings to SchemaVersion.
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

// setSchema writes the version, if the one before it is still that of rev; 0:
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

// proveWhatIsClaimed leaves clients the names outside of the relay's domain that
// they had before such names were to be proved.
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
