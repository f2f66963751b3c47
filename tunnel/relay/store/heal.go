package store

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

// healer brings back streams of the server in this process that a write has failed
// for, as on a full disk: the server takes nothing for them any more until it has
// read them anew, whether or not there is room.
type healer struct {
	broken chan struct{} // a write has failed; room for one
	done   chan struct{} // closed at the end
}

func newHealer() *healer { return &healer{make(chan struct{}, 1), make(chan struct{})} }

func (h *healer) wait() { <-h.done }

// heard is told what the server says of errors; it says so nowhere else.
func (h *healer) heard(text string) {
	if !strings.Contains(text, "ritical write error") && !strings.Contains(text, "will be DISABLED") {
		return
	}
	select {
	case h.broken <- struct{}{}:
	default:
	}
}

// run waits for failed writes, and then for room, until life ends.
func (h *healer) run(life context.Context, s *Store, dir string) {
	defer close(h.done)
	every, healed := healPause, time.Time{}
	for {
		select {
		case <-h.broken:
		case <-life.Done():
			return
		}
		if every = min(2*every, healMost); time.Since(healed) > healMost {
			every = healPause
		}
		s.log.Error("the store's files take no more data; what is written is refused until they do", "data_dir", dir)
		pause := time.NewTicker(every)
		for {
			select {
			case <-pause.C:
			case <-life.Done():
				pause.Stop()
				return
			}
			if checkRoom(dir) != nil {
				continue
			}
			select {
			case <-h.broken: // by another write to what is read anew now
			default:
			}
			err := s.reopen()
			if err == nil {
				break
			}
			s.log.Warn("the store's files cannot be opened again yet", "error", err)
		}
		pause.Stop()
		healed = time.Now()
		s.log.Info("the store's files take data again")
		s.followAnew() // the server has forgotten the watches
	}
}

// reopen has the server in this process read its files anew. Who is connected to it
// stays so.
func (s *Store) reopen() error {
	if err := s.server.ShutdownJetStream(); err != nil {
		return fmt.Errorf("close the store's files: %w", err)
	}
	files := s.files // the server makes the folder's name longer in it
	if err := s.server.EnableJetStream(&files); err != nil {
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
