package agent

import (
	"context"
	"path/filepath"
	"strings"

	"adit/tunnel/agent/diagnosis"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/session"
	"adit/tunnel/wire"
)

// Diagnose checks what only the agent can see: the state folder, handshakes with the relay over
// both transports, and whether the session answers. It changes nothing: the sessions that it makes
// send no Hello.
func (a *Agent) Diagnose(ctx context.Context) []diagnosis.Check {
	a.mu.Lock()
	token, configured := a.login.token, a.login.configured()
	addr := token.Relay
	if a.cur != nil {
		addr = a.cur.Addr
	}
	l := a.cur
	a.mu.Unlock()

	checks := []diagnosis.Check{a.checkState()}
	if !configured {
		return checks
	}
	checks = append(checks, diagnosis.Transports(ctx, a.cfg.Dial, token, addr)...)
	if l != nil {
		checks = append(checks, diagnosis.Answer(ctx, l.Session))
	}
	return checks
}

// checkState tests whether the state folder can store what a state file may need.
func (a *Agent) checkState() diagnosis.Check {
	c := diagnosis.Check{Name: "state_folder", Status: diagnosis.OK, Tried: "write into " + a.cfg.StateDir, Result: "it can be written"}
	a.saving.Lock()
	err := a.state.Try()
	a.saving.Unlock()
	if err != nil {
		c.Status, c.Result, c.Advice = diagnosis.Failed, err.Error(), "Let the account that runs adit write there, or free some space."
	}
	a.mu.Lock()
	notices := strings.Join(a.notices, "; ")
	a.mu.Unlock()
	if err == nil && notices != "" {
		c.Status, c.Result, c.Advice = diagnosis.Warning, notices, "Look at the file that was kept in "+filepath.Clean(a.cfg.StateDir)+"."
	}
	return c
}

// MeasureSpeed moves bytes between this machine and the relay for a short time, over each transport
// and in each direction, alongside the tunnels' traffic. The bytes count as the client's traffic at
// the relay. If another measurement is in progress, it returns refusal.CodeControlBusy.
func (a *Agent) MeasureSpeed(ctx context.Context) (diagnosis.Speeds, error) {
	if !a.speeding.TryLock() {
		return diagnosis.Speeds{}, &refusal.Error{Code: refusal.CodeControlBusy, Message: "the speed is being measured; try again in a moment"}
	}
	defer a.speeding.Unlock()
	a.mu.Lock()
	cur := a.cur
	j := session.Joining{Token: a.login.token, ClientID: a.login.auth.ClientID, Trial: true}
	a.mu.Unlock()
	switch {
	case cur == nil || !cur.Alive():
		return diagnosis.Speeds{}, a.noSession()
	case !cur.Control.Can(wire.FeatureSpeed):
		return diagnosis.Speeds{}, &refusal.Error{Code: refusal.CodeRelayRejected, Message: "the relay is too old to measure the speed; ask its operator to update it"}
	}
	way := diagnosis.Way{Dialer: a.dialer, Addr: cur.Addr, Joining: j, Used: cur.Link.Transport(), Set: a.cfg.Transport}
	return way.Speeds(ctx), ctx.Err()
}
