package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/leader"
	"adit/tunnel/relay/store/table"
)

const (
	// otherNodes is how long to look for other nodes. They reconnect to servers that have just
	// started in less time.
	otherNodes = 500 * time.Millisecond
	otherLook  = 100 * time.Millisecond
	// beginTime is how long another node may take to create the relay's state.
	beginTime = 5 * time.Second
)

var errOthersRun = errors.New("other nodes of this relay run, but the NATS cluster has nothing of it any more; bring the backup back " +
	"with adit relay restore, into an empty data folder, and then restart the nodes one after another; to begin a new relay instead, end all other nodes first")

// refuseBeside returns an error if the store contains no relay although nodes of one are
// running: they have it in memory, and a new relay would replace it. Nodes that start a relay
// together wait for the first one. A listener that never answers is not a node.
func (s *Store) refuseBeside(ctx context.Context, l leader.Leader) error {
	begun, answered := time.Now(), false
	for alone := begun; ; {
		switch _, err := s.Settings.Get(ctx, SettingAuthority); {
		case err == nil:
			return nil
		case !errors.Is(err, bucket.ErrNotFound):
			return err
		}
		others, err := s.tables.Others(ctx)
		now := time.Now()
		answered = answered || others == table.OtherNode
		switch {
		case err != nil:
			return err
		case others != table.Nobody:
			alone = now
		case now.Sub(alone) >= otherNodes:
			return nil
		}
		if others != table.Nobody && now.Sub(begun) >= beginTime {
			if !answered {
				return nil
			}
			_, there, err := l.Get(ctx, SettingAuthority) // the server that was asked may lag behind
			if err != nil {
				return fmt.Errorf("read setting %s: %w", SettingAuthority, err)
			}
			if !there {
				return errOthersRun
			}
		}
		pause := time.NewTimer(otherLook)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}
