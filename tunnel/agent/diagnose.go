package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Results of a Check.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkFailed  = "failed"
	checkSkipped = "skipped"
)

// checkTime is how long one look at the network may take.
const checkTime = 8 * time.Second

// maxOriginChecks bounds how many tunnels' services are looked at.
const maxOriginChecks = 20

// Diagnose looks at what a session needs and says what it found. It changes
// nothing: the sessions that it tries say no Hello.
func (a *Agent) Diagnose(ctx context.Context) []Check {
	a.mu.Lock()
	token, configured := a.token, a.auth.Token != ""
	addr := token.Relay
	if a.cur != nil {
		addr = a.cur.addr
	}
	state := a.statusLocked()
	l := a.cur
	var routes []*route
	for _, t := range a.sortedLocked() {
		if !t.stopped && t.spec.Type != wire.TypeUDP && len(routes) < maxOriginChecks {
			routes = append(routes, t.route.Load())
		}
	}
	a.mu.Unlock()

	checks := []Check{a.checkState()}
	if !configured {
		checks = append(checks, Check{Name: "auth_token", Status: checkFailed, Tried: "look for an auth token", Result: "there is none", Advice: "paste the token that the relay's operator gave you, on the page or with adit login"})
	} else {
		checks = append(checks, Check{Name: "auth_token", Status: checkOK, Tried: "look for an auth token", Result: token.Hint() + " for the relay " + token.Relay})
		checks = append(checks, checkRelayName(ctx, addr))
		checks = append(checks, a.checkTransport(ctx, token, addr, link.DTLS), a.checkTransport(ctx, token, addr, link.TLS))
		checks = append(checks, checkSession(state))
		if l != nil {
			checks = append(checks, a.checkAnswer(ctx, l))
		}
	}
	for _, r := range routes {
		checks = append(checks, a.checkOne(ctx, r))
	}
	return checks
}

// checkState tries whether the state folder can be written.
func (a *Agent) checkState() Check {
	c := Check{Name: "state_folder", Status: checkOK, Tried: "write into " + a.cfg.StateDir, Result: "it can be written"}
	f, err := os.CreateTemp(a.cfg.StateDir, ".check.*.tmp")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		c.Status, c.Result, c.Advice = checkFailed, err.Error(), "give the account that adit runs as the right to write there, or free some space"
	}
	a.mu.Lock()
	notices := strings.Join(a.notices, "; ")
	a.mu.Unlock()
	if err == nil && notices != "" {
		c.Status, c.Result, c.Advice = checkWarning, notices, "look into the file that was kept in "+filepath.Clean(a.cfg.StateDir)
	}
	return c
}

// checkRelayName resolves the relay's name.
func checkRelayName(ctx context.Context, addr string) Check {
	host, _, _ := net.SplitHostPort(addr)
	c := Check{Name: "relay_name", Status: checkOK, Tried: "resolve " + host}
	if _, err := netip.ParseAddr(host); err == nil {
		c.Status, c.Result = checkSkipped, "the relay is named by its address"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		c.Status, c.Result, c.Advice = checkFailed, err.Error(), "check this machine's network and DNS servers"
		return c
	}
	c.Result = strings.Join(addrs[:min(len(addrs), 8)], ", ")
	return c
}

// checkTransport makes a session over one transport and closes it.
func (a *Agent) checkTransport(ctx context.Context, token wire.Token, addr string, over link.Transport) Check {
	c := Check{Name: "relay_" + string(over), Status: checkOK, Tried: fmt.Sprintf("reach %s over %s", addr, strings.ToUpper(string(over)))}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	begin := time.Now()
	session, err := a.cfg.Dial(ctx, link.DialConfig{Relay: addr, Fingerprint: token.Fingerprint, Transport: over})
	if err != nil {
		c.Status, c.Result = checkFailed, describe(err, addr)
		c.Advice = "check that the relay runs and that no firewall is in the way"
		switch {
		case errors.Is(err, link.ErrUntrusted):
			c.Advice = "ask the relay's operator for a new token, and do not use this network for secrets until you know who answered"
		case over == link.DTLS:
			c.Status, c.Advice = checkWarning, "the network lets no UDP through to the relay's port; adit uses TLS then, which is slower on lossy networks"
		}
		return c
	}
	session.Close("only a check")
	c.Result = "reached in " + time.Since(begin).Round(time.Millisecond).String()
	return c
}

func checkSession(s Status) Check {
	c := Check{Name: "session", Status: checkOK, Tried: "look at the session with the relay", Result: s.State}
	switch {
	case s.Connected:
		c.Result = fmt.Sprintf("connected over %s, round trip %.1f ms", strings.ToUpper(s.Transport), s.RTTMillis)
	case s.State == StatePaused:
		c.Status, c.Advice = checkWarning, "resume when you want the tunnels back"
	case s.State == StateRejected:
		c.Status, c.Result, c.Advice = checkFailed, s.LastError, "configure a token that the relay accepts"
	default:
		c.Status, c.Advice = checkFailed, "see the checks before this one"
		if s.LastError != "" {
			c.Result = s.State + ": " + s.LastError
		}
	}
	return c
}

// checkAnswer asks the relay for an answer on the session itself.
func (a *Agent) checkAnswer(ctx context.Context, l *live) Check {
	c := Check{Name: "relay_answers", Status: checkOK, Tried: "ask the relay for an answer"}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	begin := time.Now()
	if err := l.ctl.ping(ctx); err != nil {
		c.Status, c.Result, c.Advice = checkFailed, describe(err, l.addr), "reconnect, and look at the relay if that does not help"
		return c
	}
	c.Result = "answered in " + time.Since(begin).Round(time.Microsecond).String()
	return c
}

// checkOne tries whether a tunnel's local service accepts connections.
func (a *Agent) checkOne(ctx context.Context, r *route) Check {
	c := Check{Name: "origin_" + r.id, Status: checkOK, Tried: "connect to " + r.local + " for the tunnel " + strconv.Quote(r.name), Result: "it accepts connections"}
	conn, err := a.dialOrigin(ctx, r)
	if err != nil {
		c.Status, c.Result, c.Advice = checkFailed, err.Error(), "start the local service, or change the tunnel's local_ip and local_port"
		return c
	}
	conn.Close()
	return c
}
