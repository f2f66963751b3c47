package control

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"adit/tunnel/wire"
)

const (
	// sameReport is how often the same problem of a tunnel is reported.
	sameReport  = 10 * time.Second
	reportPause = 2 * time.Second
	maxReports  = 64
	reportWait  = 15 * time.Second // for the relay's answer
)

// Reports are complaints about tunnels' origins, for the log and for the relay, sent over whichever
// session is available. A flood of visitors does not cause a flood of complaints.
type Reports struct {
	log  *slog.Logger
	list chan wire.AgentError

	mu   sync.Mutex
	told map[string]time.Time
}

// NewReports returns an empty Reports.
func NewReports(log *slog.Logger) *Reports {
	return &Reports{log: log, list: make(chan wire.AgentError, maxReports)}
}

// allow reports whether to report what now.
func (r *Reports) allow(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Sub(r.told[what]) < sameReport {
		return false
	}
	if r.told == nil || len(r.told) > 1024 {
		r.told = make(map[string]time.Time)
	}
	r.told[what] = now
	return true
}

// Complain tells the log and the relay why a visitor of the tunnel with the given id and name was
// not served.
func (r *Reports) Complain(id, name, message string) {
	if !r.allow(id + " " + message) {
		return
	}
	r.log.Warn("visitor not served", "tunnel", id, "name", name, "reason", message)
	select {
	case r.list <- wire.AgentError{Time: time.Now().UTC(), Key: id, Message: Clip(message)}:
	default: // the relay is not told of everything
	}
}

// Send passes complaints on to the relay, several at a time, until ctx ends.
func (r *Reports) Send(ctx context.Context, c *Client) {
	for {
		var batch []wire.AgentError
		select {
		case <-ctx.Done():
			return
		case e := <-r.list:
			batch = append(batch, e)
		}
		for more := true; more && len(batch) < maxReports; {
			select {
			case e := <-r.list:
				batch = append(batch, e)
			default:
				more = false
			}
		}
		send, cancel := context.WithTimeout(ctx, reportWait)
		if err := c.report(send, batch); err != nil && ctx.Err() == nil {
			r.log.Debug("complaints not told to the relay", "error", err)
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-time.After(reportPause):
		}
	}
}
