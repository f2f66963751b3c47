package engine

import (
	"context"
	"errors"
	"strings"
	"time"
)

// It is looked every healPause whether the data folder takes data again, and less
// often where that did not last.
const (
	healPause = time.Second
	healMost  = time.Minute
)

// Full reports whether the files of the server in this process take no more data, as on a
// full disk.
func (e *Engine) Full() bool { return e.full.Load() }

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
			case <-e.broken: // by another write to what is read anew now
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

// reopen begins the server in this process anew, which reads its files, and waits
// until it can be reached. (Having the same server read them anew has it handle each
// request twice from then on, and races with requests that are just coming in.)
func (e *Engine) reopen(ctx context.Context) error {
	select {
	case <-e.back: // of a time before
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
