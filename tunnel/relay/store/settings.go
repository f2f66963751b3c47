package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/leader"
	"adit/tunnel/relay/store/seal"
)

// Settings holds the relay's single values.
type Settings struct {
	kv   jetstream.KeyValue
	seal *seal.Seal // nil: private keys are stored unsealed
}

// secretSettings contain private keys.
var secretSettings = map[string]bool{SettingAuthority: true, SettingVisitorCA: true, SettingSignInKey: true}

// Names of settings.
const (
	SettingAuthority      = "authority"      // PEM: the authority that agents trust
	SettingVisitorCA      = "visitor_ca"     // PEM: the local authority for https visitors
	SettingProofKey       = "proof_key"      // for the DNS records that prove domains
	SettingSignInKey      = "sign_in_key"    // seals visitors' sign-ins
	SettingAdminTokenHash = "admin_token"    // SHA-256, hex
	settingStore          = "store_id"       // identifies the store; differs from that of the store a backup was made of
	settingSchema         = "schema_version" // number
	settingRestoring      = "restoring"      // SHA-256, hex, of a backup that has only been restored in part
)

// Get returns a setting, or ErrNotFound.
func (s *Settings) Get(ctx context.Context, name string) ([]byte, error) {
	e, err := bucket.Read(ctx, s.kv, name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, bucket.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read setting %s: %w", name, err)
	}
	v, err := s.open(name, e.Value())
	if err != nil {
		return nil, fmt.Errorf("read setting %s: %w", name, err)
	}
	if s.seal != nil && secretSettings[name] && !seal.Is(e.Value()) { // stored before the relay had a secret
		_, _, err := bucket.Again(ctx, func(ctx context.Context) (uint64, error) {
			return s.kv.Update(ctx, name, s.close(name, v), e.Revision())
		})
		if err != nil && !bucket.IsConflict(err) {
			return nil, fmt.Errorf("seal setting %s: %w", name, err)
		}
	}
	return v, nil
}

// close seals a secret value, and open undoes that.
func (s *Settings) close(name string, v []byte) []byte {
	if s.seal == nil || !secretSettings[name] {
		return v
	}
	return s.seal.Close(name, v)
}

func (s *Settings) open(name string, v []byte) ([]byte, error) {
	if !secretSettings[name] || !seal.Is(v) {
		return v, nil
	}
	return s.seal.Open(name, v)
}

// Put stores a setting and replaces any other. It is only for a restore, which has the store
// to itself. Running nodes use Once, or all store the same value.
func (s *Settings) Put(ctx context.Context, name string, value []byte) error {
	if err := bucket.Replace(ctx, s.kv, name, s.close(name, value)); err != nil {
		return fmt.Errorf("store setting %s: %w", name, err)
	}
	return nil
}

// Once returns a setting, after creating and storing it if necessary. Nodes that do so at the
// same time all get the same value.
func (s *Settings) Once(ctx context.Context, name string, make func() ([]byte, error)) ([]byte, error) {
	v, err := s.Get(ctx, name)
	if !errors.Is(err, bucket.ErrNotFound) {
		return v, err
	}
	if v, err = make(); err != nil {
		return nil, err
	}
	_, _, err = bucket.Again(ctx, func(ctx context.Context) (uint64, error) { return s.kv.Create(ctx, name, s.close(name, v)) })
	if errors.Is(err, jetstream.ErrKeyExists) { // stored by another node, or by an attempt whose answer was lost
		return s.Get(ctx, name)
	}
	if err != nil {
		return nil, fmt.Errorf("store setting %s: %w", name, err)
	}
	return v, nil
}

// refuseParted returns an error if a restore has begun but not finished.
func (s *Settings) refuseParted(ctx context.Context) error {
	switch _, err := s.Get(ctx, settingRestoring); {
	case errors.Is(err, bucket.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return errors.New("a backup was being restored into this store, and not all of it is there; " +
		"run adit relay restore again with the same file, and an empty data folder, before the relay starts")
}

// refuseEmptied returns an error if the relay is gone from the store. Other nodes that still
// have it in memory would forget clients and policies if a new relay were started.
func (s *Settings) refuseEmptied(ctx context.Context, l leader.Leader, cfg Config) error {
	if _, err := s.Get(ctx, SettingAuthority); !errors.Is(err, bucket.ErrNotFound) {
		return err
	}
	var there bool
	err := bucket.Patiently(ctx, func(ctx context.Context) (err error) { // the server that was asked may lag behind
		_, there, err = l.Get(ctx, SettingAuthority)
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("read setting %s: %w", SettingAuthority, err)
	case there:
		return nil
	case len(cfg.URLs) > 0:
		return fmt.Errorf("the NATS cluster has no relay in it, but the data folder %s is of one; see that nats.urls leads to its cluster, or bring it back "+
			"with adit relay restore, into an empty data folder; without that, an empty one begins a new relay, which no token leads to", cfg.Dir)
	}
	return fmt.Errorf("the data folder %s has no relay in it any more, or it is damaged; bring it back with adit relay restore, into an empty data folder; "+
		"without that, an empty one begins a new relay, which no token leads to", cfg.Dir)
}

// unkept reports whether a setting belongs to this store only and is left out of backups.
func unkept(name string) bool {
	return name == settingSchema || name == settingRestoring || name == settingStore || name == settingParts
}

// all returns every setting that belongs in a backup.
func (s *Settings) all(ctx context.Context) (map[string][]byte, error) {
	names, err := bucket.Keys(ctx, s.kv, jetstream.AllKeys)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		if unkept(name) {
			continue
		}
		if all[name], err = s.Get(ctx, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}
