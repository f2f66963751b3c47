package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// BackupFormat and BackupVersion are of the shape of a Backup.
const (
	BackupFormat  = "adit-relay-backup"
	BackupVersion = 1
)

// Backup is all that a relay must not lose. It holds private keys. Access events
// are not in it.
type Backup struct {
	Format     string                     `json:"format"`
	Version    int                        `json:"version"`
	Schema     int                        `json:"schema"`
	Created    time.Time                  `json:"created"`
	AdminToken string                     `json:"admin_token,omitempty"`
	Settings   map[string][]byte          `json:"settings"`
	Clients    []Client                   `json:"clients"`
	Claims     []Claim                    `json:"claims"`
	Policies   []StoredPolicy             `json:"policies"`
	Operators  map[string]json.RawMessage `json:"operators,omitempty"` // accounts and API tokens of the console
}

// ErrNotEmpty is returned for a restore into a store that has something.
var ErrNotEmpty = errors.New("the store is not empty")

// Validate reports why a backup cannot be restored.
func (b *Backup) Validate() error {
	switch {
	case b.Format != BackupFormat:
		return errors.New("it is not a backup of a relay")
	case b.Version < 1 || b.Version > BackupVersion || b.Schema < 1 || b.Schema > SchemaVersion:
		return fmt.Errorf("it is of a newer adit (version %d, schema %d; this one knows %d and %d); update adit", b.Version, b.Schema, BackupVersion, SchemaVersion)
	case len(b.Settings[SettingAuthority]) == 0:
		return errors.New("it has no authority: tokens of clients would not work")
	}
	names := map[string]bool{}
	for _, c := range b.Clients {
		if !clientName.MatchString(c.Name) || c.ID == "" || names[c.Name] {
			return fmt.Errorf("its client %q cannot be one", c.Name)
		}
		names[c.Name] = true
	}
	for _, c := range b.Claims {
		if _, _, port := PortOf(c.Target); !port && DomainOf(c.Target) == "" {
			return fmt.Errorf("its claim of %q cannot be one", c.Target)
		}
	}
	return nil
}

// Backup returns what the store has. Clients are read last, so that each claim's
// client is there.
func (s *Store) Backup(ctx context.Context) (Backup, error) {
	b := Backup{Format: BackupFormat, Version: BackupVersion, Schema: SchemaVersion, Created: time.Now().UTC()}
	var err error
	if b.Settings, err = s.Settings.all(ctx); err != nil {
		return Backup{}, err
	}
	b.Operators = s.Operators.lasting()
	b.Policies, b.Claims, b.Clients = s.Policies.List(), s.Claims.List(), s.Clients.List()
	return b, nil
}

// Restore writes a backup into a store that has nothing yet.
func (s *Store) Restore(ctx context.Context, b Backup) error {
	if err := b.Validate(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	have, err := s.Settings.all(ctx)
	if err != nil {
		return err
	}
	if len(have)+len(s.Clients.List())+len(s.Claims.List())+len(s.Policies.List()) > 0 {
		return ErrNotEmpty
	}
	for _, v := range b.Clients {
		if err := s.Clients.table.create(ctx, v.Name, v); err != nil {
			return err
		}
	}
	for _, v := range b.Claims {
		if err := s.Claims.table.create(ctx, v.Target, v); err != nil {
			return err
		}
	}
	for _, v := range b.Policies {
		if err := s.Policies.table.create(ctx, v.Target, v); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b.Operators)) {
		if err := s.Operators.table.create(ctx, key, b.Operators[key]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.Settings)) {
		if name == settingSchema {
			continue
		}
		if err := s.Settings.Put(ctx, name, b.Settings[name]); err != nil {
			return err
		}
	}
	return nil
}

// all returns every setting but the schema's version.
func (s *Settings) all(ctx context.Context) (map[string][]byte, error) {
	keys, err := s.kv.ListKeys(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	all := map[string][]byte{}
	if err != nil {
		return all, nil
	}
	for name := range keys.Keys() {
		if name == settingSchema {
			continue
		}
		if all[name], err = s.Get(ctx, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}
