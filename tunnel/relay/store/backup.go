package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/claims"
)

// BackupFormat and BackupVersion identify the format of a Backup.
const (
	BackupFormat  = "adit-relay-backup"
	BackupVersion = 2
)

// Backup is everything that a relay must not lose. It contains private keys. It does not
// contain access events.
type Backup struct {
	Format     string            `json:"format"`
	Version    int               `json:"version"`
	Schema     int               `json:"schema"`
	Created    time.Time         `json:"created"`
	AdminToken string            `json:"admin_token,omitempty"`
	Settings   map[string][]byte `json:"settings"`
	Clients    []Client          `json:"clients"`
	Claims     []claims.Claim    `json:"claims"`
	Policies   []StoredPolicy    `json:"policies"`
	// Since version 2.
	Usages []Usage       `json:"usages,omitempty"`
	Proofs []Proof       `json:"proofs,omitempty"`
	Sinks  []StoredSink  `json:"sinks,omitempty"`
	Audit  []audit.Entry `json:"audit,omitempty"`
	// Ended is needed because sign-ins that have ended would be valid again without it: their
	// key is in Settings.
	Ended []EndedSignIns `json:"ended_sign_ins,omitempty"`
	// Operators are the console's accounts and API tokens.
	Operators map[string]json.RawMessage `json:"operators,omitempty"`
}

// Errors of Restore.
var (
	ErrNotEmpty = errors.New("the store is not empty")
	ErrPartial  = errors.New("not all of the backup was restored")
)

// Validate returns an error if a backup cannot be restored.
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
	chain := audit.Verifier{}
	for _, e := range b.Audit {
		if !chain.Add(e) {
			return fmt.Errorf("its audit log is broken at entry %d: %s", chain.Result().BrokenAt, chain.Result().Reason)
		}
	}
	for _, c := range b.Claims {
		_, _, port := claims.PortOf(c.Target)
		if _, _, private := claims.PrivateOf(c.Target); !port && !private && claims.DomainOf(c.Target) == "" {
			return fmt.Errorf("its claim of %q cannot be one", c.Target)
		}
	}
	return nil
}

// Backup returns the contents of the store. Clients are read last, so that the client of every
// claim is included.
func (s *Store) Backup(ctx context.Context) (Backup, error) {
	b := Backup{Format: BackupFormat, Version: BackupVersion, Schema: SchemaVersion, Created: time.Now().UTC()}
	var err error
	if b.Settings, err = s.Settings.all(ctx); err != nil {
		return Backup{}, err
	}
	b.Operators = s.Operators.lasting()
	b.Usages, b.Proofs, b.Sinks, b.Ended = s.Usages.table.List(), s.Proofs.List(), s.Sinks.List(), s.Ended.List()
	for _, v := range b.Sinks {
		if v.Fault != nil {
			return Backup{}, fmt.Errorf("read sink %s: %w", v.Name, v.Fault)
		}
	}
	if err := s.Audit.Each(ctx, func(seq uint64, e audit.Entry, fault error) error {
		b.Audit = append(b.Audit, e)
		return fault
	}); err != nil {
		return Backup{}, err
	}
	b.Policies, b.Claims, b.Clients = s.Policies.List(), s.Claims.List(), s.Clients.List()
	for i, v := range b.Policies {
		if v.Fault != nil {
			return Backup{}, fmt.Errorf("read the policy of %s: %w", v.Target, v.Fault)
		}
		b.Policies[i].Claims = 0 // only meaningful in this store
	}
	return b, nil
}

// Restore writes a backup into an empty store that was opened with Config.Restoring. After an
// error that matches ErrPartial, no relay opens the store until Restore has succeeded with the
// same backup.
func (s *Store) Restore(ctx context.Context, b Backup) error {
	if err := b.Validate(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	sum := sha256.Sum256(text)
	mark := []byte(hex.EncodeToString(sum[:]))
	switch before, err := s.Settings.Get(ctx, settingRestoring); {
	case errors.Is(err, bucket.ErrNotFound):
		if err := s.empty(ctx); err != nil {
			return err
		}
	case err != nil:
		return err
	case !bytes.Equal(before, mark):
		return errors.New("another backup was being restored into this store, and not all of it is there; restore that one again first")
	}
	if err := s.Settings.Put(ctx, settingRestoring, mark); err != nil {
		return err
	}
	if err := s.fill(ctx, b); err != nil {
		return fmt.Errorf("%w: %w", ErrPartial, err)
	}
	if err := bucket.Purge(ctx, s.Settings.kv, settingRestoring); err != nil {
		return fmt.Errorf("%w: %w", ErrPartial, err)
	}
	return nil
}

// empty returns ErrNotEmpty if the store contains anything that a restore would be mixed with.
// What clients use and hold does not count on its own: running nodes write it into a cluster
// that has lost everything else, and it belongs to the relay whose backup is being restored.
func (s *Store) empty(ctx context.Context) error {
	settings, err := s.Settings.all(ctx)
	if err != nil {
		return err
	}
	last, err := s.Audit.Last(ctx)
	if err != nil {
		return err
	}
	have := int(last) + len(settings) + len(s.Clients.List()) + len(s.Policies.List()) +
		len(s.Operators.lasting()) + len(s.Proofs.List()) + len(s.Sinks.List()) + len(s.Ended.List())
	if have > 0 {
		return ErrNotEmpty
	}
	return nil
}

// fill writes the contents of a backup, replacing what an earlier attempt has written.
func (s *Store) fill(ctx context.Context, b Backup) error {
	for _, v := range b.Clients {
		if err := s.Clients.table.Put(ctx, v.Name, v); err != nil {
			return err
		}
	}
	for _, v := range b.Claims {
		if err := s.Claims.Put(ctx, v); err != nil {
			return err
		}
	}
	for _, v := range b.Policies {
		if err := s.Policies.table.Put(ctx, v.Target, s.Policies.close(v)); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b.Operators)) {
		if err := s.Operators.table.Put(ctx, key, s.Operators.close(key, b.Operators[key])); err != nil {
			return err
		}
	}
	for _, v := range b.Usages {
		if err := s.Usages.table.Put(ctx, v.ClientID, v); err != nil {
			return err
		}
	}
	for _, v := range b.Proofs {
		if err := s.Proofs.table.Put(ctx, v.Domain, v); err != nil {
			return err
		}
	}
	for _, v := range b.Sinks {
		if err := s.Sinks.table.Put(ctx, v.Name, s.Sinks.close(v)); err != nil {
			return err
		}
	}
	for _, v := range b.Ended {
		if err := s.Ended.table.Put(ctx, endedKey(v.User), v); err != nil {
			return err
		}
	}
	if err := s.Audit.Restore(ctx, b.Audit); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(b.Settings)) {
		if unkept(name) {
			continue
		}
		if err := s.Settings.Put(ctx, name, b.Settings[name]); err != nil {
			return err
		}
	}
	for version := b.Schema; version < SchemaVersion; version++ {
		if err := migrations[version](ctx, s.migration); err != nil {
			return fmt.Errorf("bring the backup from schema %d to %d: %w", version, version+1, err)
		}
	}
	return nil
}
