package agent

import (
	"context"
	"slices"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/state"
)

// wants reports whether t asks for what g was.
func (t *tunnel) wants(g state.Grant) bool {
	return t.spec.Domain != "" && g.Domain != "" && definition.SameName(t.spec.Domain, g.Domain) || g.RemotePort != 0 && t.spec.RemotePort == g.RemotePort
}

// forgo makes the relay forget the name or port that t has given up; t.claiming is held.
func (l *live) forgo(ctx context.Context, t *tunnel) error {
	asking, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	if err := l.Control.Forgo(asking, t.id); err != nil {
		return err
	}
	l.agent.mu.Lock()
	defer l.agent.mu.Unlock()
	if t.grant.GivenUp {
		t.grant = state.Grant{}
	}
	return nil
}

// forgoFor makes the relay forget what tunnels have given up and others were refused, as with two
// tunnels that exchange their names: neither could have the other's name before that has got
// another. It reports whether there was any. What nobody waits for is kept, so that a change that
// is refused can be undone.
func (l *live) forgoFor(ctx context.Context, lost []*tunnel) (some bool) {
	a := l.agent
	a.mu.Lock()
	var todo []*tunnel
	for _, t := range a.sortedLocked() {
		if a.second != l && t.grant.GivenUp && slices.ContainsFunc(lost, func(o *tunnel) bool { return o != t && o.wants(t.grant) }) {
			todo = append(todo, t)
		}
	}
	a.mu.Unlock()
	for _, t := range todo {
		some = l.forgoNow(ctx, t) || some
	}
	return some
}

// forgoNow is like forgo for a tunnel whose claim may be in progress.
func (l *live) forgoNow(ctx context.Context, t *tunnel) bool {
	t.claiming.Lock()
	defer t.claiming.Unlock()
	a := l.agent
	a.mu.Lock()
	still := a.cur == l && t.grant.GivenUp && !t.deleted
	a.mu.Unlock()
	if !still {
		return false
	}
	if err := l.forgo(ctx, t); err != nil {
		a.log.Warn("name not given up yet", "tunnel", t.id, "error", err)
		return false
	}
	return true
}
