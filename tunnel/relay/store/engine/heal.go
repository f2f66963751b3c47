package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// It is looked every healPause whether the data folder takes data again, and less
// often where that did not last.
const (
	healPause = time.Second
	healMost  = time.Minute
)

// heard is told what the server says of errors; it says so nowhere else.
func (e *Engine) heard(text string) {
	if !strings.Contains(text, "ritical write error") && !strings.Contains(text, "will be DISABLED") {
		return
	}
	select {
	case e.broken <- struct{}{}:
	default:
	}
}

// heal brings back streams of the server in this process that a write has failed for,
// as on a full disk, until ctx ends: the server takes nothing for them any more until
// it has read them anew, whether or not there is room. Each time that it has, the
// server has forgotten the watches, and healed is called.
func (e *Engine) heal(ctx context.Context, healed func()) {
	every, last := healPause, time.Time{}
	for {
		select {
		case <-e.broken:
		case <-ctx.Done():
			return
		}
		if every = min(2*every, healMost); time.Since(last) > healMost {
			every = healPause
		}
		e.log.Error("the store's files take no more data; what is written is refused until they do", "data_dir", e.cfg.Dir)
		pause := time.NewTicker(every)
		for {
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
				return
			}
			if checkRoom(e.cfg.Dir) != nil {
				continue
			}
			select {
			case <-e.broken: // by another write to what is read anew now
			default:
			}
			err := e.reopen()
			if err == nil {
				break
			}
			e.log.Warn("the store's files cannot be opened again yet", "error", err)
		}
		pause.Stop()
		last = time.Now()
		e.log.Info("the store's files take data again")
		healed()
	}
}

// reopen has the server in this process read its files anew. Who is connected to it
// stays so.
func (e *Engine) reopen() error {
	if err := e.server.ShutdownJetStream(); err != nil {
		return fmt.Errorf("close the store's files: %w", err)
	}
	files := e.files // the server makes the folder's name longer in it
	if err := e.server.EnableJetStream(&files); err != nil {
		return fmt.Errorf("open the store's files: %w", err)
	}
	return nil
}

// filesOf says to a server where its files are, as its options do.
func filesOf(o *server.Options) server.JetStreamConfig {
	return server.JetStreamConfig{
		StoreDir: o.StoreDir, SyncInterval: o.SyncInterval, SyncAlways: o.SyncAlways,
		MaxMemory: o.JetStreamMaxMemory, MaxStore: o.JetStreamMaxStore, Strict: !o.NoJetStreamStrict,
	}
}
