package engine

import (
	"context"
	"errors"
	"strings"
	"time"
)

// The data folder is checked every healPause until it accepts data again, and less often if
// that did not last before.
const (
	healPause = time.Second
	healMost  = time.Minute
)

// Full reports whether the server in this process rejects writes because of a failed one, for
// example because the disk was full.
func (e *Engine) Full() bool { return e.full.Load() }

// heard is called with the server's error messages; there is no other way to learn of those
// errors.
func (e *Engine) heard(text string) {
	if !strings.Contains(text, "ritical write error") && !strings.Contains(text, "will be DISABLED") {
		return
	}
	select {
	case e.broken <- struct{}{}:
	default:
	}
}

// heal restores the streams of the server in this process after a write has failed, for
// example because the disk was full, until ctx ends. Even once there is room again, the server
// accepts nothing more for such streams until it has read them again. The server has then
// forgotten the watches, so heal calls healed.
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
		e.full.Store(true)
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
			case <-e.broken: // by another write to the files that are about to be read again
			default:
			}
			err := e.reopen(ctx)
			if err == nil {
				break
			}
			e.log.Warn("the store's files cannot be opened again yet", "error", err)
		}
		pause.Stop()
		e.full.Store(false)
		last = time.Now()
		e.log.Info("the store's files take data again")
		healed()
	}
}

// reopen restarts the server in this process, so that it reads its files again, and waits
// until it can be reached. (A server that is told to read them again without a restart handles
// each request twice from then on, and races with incoming requests.)
func (e *Engine) reopen(ctx context.Context) error {
	select {
	case <-e.back: // from an earlier reconnection
	default:
	}
	if err := e.server.begin(); err != nil {
		return err
	}
	select {
	case <-e.back:
		return nil
	case <-time.After(startWait):
		return errors.New("the store's server does not let this relay connect")
	case <-ctx.Done():
		return ctx.Err()
	}
}
