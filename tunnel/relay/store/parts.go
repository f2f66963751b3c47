package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"adit/tunnel/relay/store/bucket"
)

// settingParts lists, as JSON, the parts that a shared store has had.
const settingParts = "parts"

// parts are the buckets without which nodes that start would open what was closed, or give
// away what belongs to somebody.
var parts = []string{"clients", "claims", "policies", "proofs", "sinks", "operators", "ended"}

// goneTime is how long a part must be missing before it counts as lost, since servers that
// have just started may not know it yet.
const goneTime = 5 * time.Second

// refuseWithoutParts returns an error if a bucket that existed is gone. It would otherwise be
// created again, empty, and nodes that start would take that for the configuration.
func (s *Store) refuseWithoutParts(ctx context.Context) error {
	had, err := s.hadParts(ctx)
	if err != nil {
		return err
	}
	for begun := time.Now(); ; {
		gone, err := s.goneOf(ctx, had)
		if err != nil || len(gone) == 0 {
			return err
		}
		if time.Since(begun) > goneTime {
			return fmt.Errorf("NATS has lost a part of what the relay kept there: %s; bring the backup back with adit relay restore, into an empty data folder, "+
				"once all streams of the relay are removed from NATS; to go on with what is left instead, remove %q from the bucket adit_settings", strings.Join(gone, ", "), settingParts)
		}
		if !bucket.Rested(ctx) {
			return ctx.Err()
		}
	}
}

// hadParts returns the parts that the store has had.
func (s *Store) hadParts(ctx context.Context) (had []string, err error) {
	text, err := s.Settings.Get(ctx, settingParts)
	if errors.Is(err, bucket.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &had); err != nil {
		return nil, fmt.Errorf("read setting %s: %w", settingParts, err)
	}
	return had, nil
}

func (s *Store) goneOf(ctx context.Context, had []string) (gone []string, err error) {
	for _, name := range had {
		var there bool
		err := bucket.Patiently(ctx, func(ctx context.Context) (err error) {
			there, err = s.engine.HasBucket(ctx, name)
			return err
		})
		if err != nil {
			return nil, err
		}
		if !there {
			gone = append(gone, name)
		}
	}
	return gone, nil
}

// noteParts records that the store now has all parts. It keeps parts recorded by a newer
// version.
func (s *Store) noteParts(ctx context.Context) error {
	had, err := s.hadParts(ctx)
	if err != nil {
		return err
	}
	all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(parts), had...))))
	if len(all) == len(had) {
		return nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return s.Settings.Put(ctx, settingParts, text)
}
