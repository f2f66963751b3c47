package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"adit/internal/span"
	"adit/tunnel/agent/control"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Results of a Check.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkFailed  = "failed"
)

// checkTime is how long one look at the network may take.
const checkTime = 8 * time.Second

// Diagnose looks at what only the agent can see: the state folder, handshakes
// with the relay over both transports, and the session's own answer. It changes
// nothing: the sessions that it tries say no Hello.
func (a *Agent) Diagnose(ctx context.Context) []Check {
	a.mu.Lock()
	token, configured := a.token, a.auth.Token != ""
	addr := token.Relay
	if a.cur != nil {
		addr = a.cur.Addr
	}
	l := a.cur
	a.mu.Unlock()

	checks := []Check{a.checkState()}
	if !configured {
		return checks
	}
	udp, tls := a.checkTransport(ctx, token, addr, link.DTLS), a.checkTransport(ctx, token, addr, link.TLS)
	if udp.Status == checkWarning && tls.Status != checkOK { // both fail, so UDP is not the reason
		udp.Advice = "TLS does not reach the relay either: see whether it runs, and whether this machine has a network."
	}
	checks = append(checks, udp, tls)
	if l != nil {
		checks = append(checks, a.checkAnswer(ctx, l))
	}
	return checks
}

// checkState tries whether the state folder takes what a state file may need.
func (a *Agent) checkState() Check {
	c := Check{Name: "state_folder", Status: checkOK, Tried: "write into " + a.cfg.StateDir, Result: "it can be written"}
	a.saving.Lock()
	err := a.state.Try()
	a.saving.Unlock()
	if err != nil {
		c.Status, c.Result, c.Advice = checkFailed, err.Error(), "Give the account that adit runs as the right to write there, or free some space."
	}
	a.mu.Lock()
	notices := strings.Join(a.notices, "; ")
	a.mu.Unlock()
	if err == nil && notices != "" {
		c.Status, c.Result, c.Advice = checkWarning, notices, "Look into the file that was kept in "+filepath.Clean(a.cfg.StateDir)+"."
	}
	return c
}

// checkTransport makes a session over one transport and closes it.
func (a *Agent) checkTransport(ctx context.Context, token wire.Token, addr string, over link.Transport) Check {
	name := "relay_udp"
	if over == link.TLS {
		name = "relay_tls"
	}
	c := Check{Name: name, Status: checkOK, Tried: fmt.Sprintf("reach %s over %s", addr, strings.ToUpper(string(over)))}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	begin := time.Now()
	session, err := a.cfg.Dial(ctx, link.DialConfig{Relay: addr, Fingerprint: token.Fingerprint, Transport: over})
	if err != nil {
		c.Status, c.Result = checkFailed, control.Describe(err, addr)
		c.Advice = "See whether the relay runs, and whether a firewall is in the way."
		switch {
		case errors.Is(err, link.ErrUntrusted):
			c.Advice = "Ask the relay's operator for a new token, and do not use this network for secrets until you know who answered."
		case over == link.DTLS:
			c.Status, c.Advice = checkWarning, "The network lets no UDP through to the relay's port; adit uses TLS then, which is slower on lossy networks."
		}
		return c
	}
	_ = session.Close("only a check")
	c.Result = "reached in " + span.Text(time.Since(begin).Round(time.Millisecond))
	return c
}

// checkAnswer asks the relay for an answer on the session itself.
func (a *Agent) checkAnswer(ctx context.Context, l *live) Check {
	c := Check{Name: "relay_answers", Status: checkOK, Tried: "ask the relay for an answer"}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	begin := time.Now()
	if err := l.Control.Ping(ctx); err != nil {
		c.Status, c.Result, c.Advice = checkFailed, control.Describe(err, l.Addr), "Run `adit reconnect`, and see whether the relay runs if that does not help."
		return c
	}
	c.Result = "answered in " + span.Text(time.Since(begin))
	return c
}
