package agent

import (
	"context"
	"sync"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/wire"
)

const (
	// sameReport is how often the same trouble of a tunnel is told.
	sameReport  = 10 * time.Second
	reportPause = 2 * time.Second
	maxReports  = 64
)

// reportLimiter keeps a flood of visitors from becoming a flood of complaints.
type reportLimiter struct {
	mu   sync.Mutex
	told map[string]time.Time
}

func (r *reportLimiter) allow(what string) bool {
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

// complain tells the log and the relay of trouble at a tunnel's origin.
func (a *Agent) complain(id, name, message string) {
	if !a.limiter.allow(id + " " + message) {
		return
	}
	a.log.Warn("visitor not served", "tunnel", id, "name", name, "reason", message)
	select {
	case a.reports <- wire.AgentError{Time: time.Now().UTC(), Key: id, Message: control.Clip(message)}:
	default: // the relay is not told of everything
	}
}

// sendReports hands complaints on to the relay, some at a time.
func (l *live) sendReports(ctx context.Context) {
	for {
		var batch []wire.AgentError
		select {
		case <-ctx.Done():
			return
		case e := <-l.agent.reports:
			batch = append(batch, e)
		}
		for more := true; more && len(batch) < maxReports; {
			select {
			case e := <-l.agent.reports:
				batch = append(batch, e)
			default:
				more = false
			}
		}
		send, cancel := context.WithTimeout(ctx, relayWait)
		if err := l.ctl.Report(send, batch); err != nil && ctx.Err() == nil {
			l.agent.log.Debug("complaints not told to the relay", "error", err)
		}
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-time.After(reportPause):
		}
	}
}
