// Package backup restores a relay from a backup made through the admin API.
package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"adit/tunnel/link"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/datadir"
	"adit/tunnel/relay/store"
)

// Restored says what a restore brought back.
type Restored struct {
	DataDir  string `json:"data_dir"`
	Clients  int    `json:"client_count"`
	Claims   int    `json:"claim_count"`
	Policies int    `json:"policy_count"`
}

// Restore restores a backup into the data folder of a configuration, which must be empty
// or missing. If it fails, it leaves the folder empty. Whatever is in an external cluster
// by then stays there, for the next attempt with the same backup to complete.
func Restore(ctx context.Context, cfg config.Config, data []byte) (Restored, error) {
	var b store.Backup
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(&b)
	if _, more := dec.Token(); err == nil && more != io.EOF {
		err = errors.New("something follows it")
	}
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Restored{}, errors.New("read the backup: it is cut off; take another one")
	case errors.As(err, &syntax):
		return Restored{}, fmt.Errorf("read the backup: it is not as adit relay backup writes one (%w); if it is encrypted, decrypt it first", err)
	case err != nil:
		return Restored{}, fmt.Errorf("read the backup: %w", err)
	}
	if err := b.Validate(); err != nil {
		return Restored{}, fmt.Errorf("read the backup: %w", err)
	}
	if _, err := link.ParseAuthority(b.Settings[store.SettingAuthority]); err != nil {
		return Restored{}, fmt.Errorf("read the backup's authority: %w", err)
	}
	there, err := os.ReadDir(cfg.DataDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Restored{}, fmt.Errorf("read the data folder: %w", err)
	}
	if len(there) > 0 {
		return Restored{}, fmt.Errorf("the data folder %s is not empty; move what is in it away first", cfg.DataDir)
	}
	if err := restore(ctx, cfg, b); err != nil {
		made, _ := os.ReadDir(cfg.DataDir)
		for _, entry := range made {
			os.RemoveAll(filepath.Join(cfg.DataDir, entry.Name()))
		}
		return Restored{}, err
	}
	return Restored{cfg.DataDir, len(b.Clients), len(b.Claims), len(b.Policies)}, nil
}

func restore(ctx context.Context, cfg config.Config, b store.Backup) (err error) {
	conf, err := cfg.Store()
	if err != nil {
		return err
	}
	conf.Restoring = true
	s, err := store.Open(ctx, conf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Restore(ctx, b); errors.Is(err, store.ErrPartial) && len(conf.URLs) > 0 {
		return fmt.Errorf("%w; the cluster has a part of it, with which no relay starts: run the same restore again, and it goes on", err)
	} else if errors.Is(err, store.ErrNotEmpty) && len(conf.URLs) > 0 {
		return fmt.Errorf("%w: the cluster has a relay's; give this one an account of its own there, or remove the streams of the other, whose names begin with KV_adit_ and adit_", err)
	} else if err != nil {
		return err
	}
	if b.AdminToken == "" {
		return nil
	}
	return datadir.WriteAdminToken(cfg.DataDir, b.AdminToken)
}
