package agent

import (
	"cmp"
	"strconv"
	"strings"
	"sync"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/forward"
	"adit/tunnel/agent/state"
	"adit/tunnel/wire"
)

// held is a tunnel's claim on a session.
type held struct {
	live   *live // nil if there is none
	rev    int   // that live knows
	number uint32
}

// by reports whether the claim is on l, for the tunnel as of revision rev.
func (h held) by(l *live, rev int) bool { return h.live == l && h.rev == rev }

// tunnel is one tunnel. The agent's mutex guards its fields, except as noted.
type tunnel struct {
	id       string
	created  time.Time
	declared bool

	spec    definition.Tunnel // normalized
	rev     int               // rises with each change of what the relay is told
	stopped bool
	deleted bool
	fault   string // why the spec of the state file may not be; it is not claimed then
	failure string // why the relay refuses it; empty if it does not
	delay   string // why the relay could not serve it when it was asked last, and is asked again

	grant state.Grant // what the relay gave last; kept when the session goes
	// first is the claim on the session in use, or on the previous one until that exists; other is
	// the one on the second session.
	first, other held
	endpointID   string
	since        time.Time

	holders holders
	gone    chan struct{} // closed when it is deleted

	published *Tunnel // as last told to the feed

	claiming sync.Mutex      // held while the relay is asked about this tunnel
	asking   *live           // the session that it is asked on; nil while it is not
	forward  *forward.Tunnel // not guarded
}

func newTunnel(id string, want definition.Tunnel, created time.Time) *tunnel {
	return &tunnel{id: id, created: created, rev: 1, gone: make(chan struct{}), spec: want, forward: forward.NewTunnel(id, want)}
}

// setSpec changes t's spec. If the change does not come about, call setSpec again with the old
// spec, and then the function that this call returned.
func (t *tunnel) setSpec(want definition.Tunnel) (undo func()) {
	t.spec, t.fault = want, ""
	return t.forward.Lead(want)
}

// claim returns the claim to make at the relay. It asks again for what the relay gave before, so
// that the public address lasts, unless fresh is set.
func (t *tunnel) claim(fresh bool) wire.Claim {
	c := t.spec.Claim()
	c.PolicyOf = t.policyOf()
	c.PolicyHolds = t.declared && len(c.Policy) > 0
	c.PolicyReplaces = len(c.Policy) > 0 && (fresh || t.grant.PublicURL == "" || t.grant.GivenUp)
	if !fresh && !t.grant.GivenUp {
		if c.Domain == "" {
			c.Domain = t.grant.Domain
		}
		if c.RemotePort == 0 {
			c.RemotePort = t.grant.RemotePort
		}
	}
	return c
}

// policyOf returns the public name or port that t has given up and for which the relay may have a
// policy; empty if there is none.
func (t *tunnel) policyOf() string {
	g := t.grant
	switch {
	case !g.GivenUp:
		return ""
	case strings.Contains(g.Domain, "."): // one label is a private tunnel's
		return g.Domain
	case g.RemotePort != 0 && t.spec.Numbered():
		return t.spec.Type + "." + strconv.Itoa(g.RemotePort)
	}
	return ""
}

// remembers reports whether claim asks for what the relay gave before, in addition to what the user
// asked for.
func (t *tunnel) remembers() bool {
	return !t.grant.GivenUp && (t.spec.Domain == "" && t.grant.Domain != "" || t.spec.RemotePort == 0 && t.grant.RemotePort != 0)
}

// holdLocked makes now the claim at, which is first or other.
func (t *tunnel) holdLocked(at *held, now held) {
	if at.live == now.live && at.number != now.number {
		now.live.visitors.Unregister(at.number, t.forward)
	}
	*at = now
	now.live.visitors.Register(now.number, t.forward)
}

// leaveLocked forgets the claim at, which is first or other.
func (t *tunnel) leaveLocked(at *held) {
	if at.live != nil {
		at.live.visitors.Unregister(at.number, t.forward)
	}
	*at = held{}
}

// unclaimLocked forgets the sessions on which t's endpoint is claimed.
func (t *tunnel) unclaimLocked() {
	t.leaveLocked(&t.first)
	t.leaveLocked(&t.other)
}

func (a *Agent) tunnelStateLocked(t *tunnel, session string) string {
	switch {
	case t.stopped:
		return TunnelStopped
	case t.fault != "" || t.failure != "":
		return TunnelFailed
	case session != StateConnected:
		return TunnelWaiting
	case t.first.live != nil && t.first.live.Alive():
		// Also on the previous session, until the tunnel is claimed on the new one.
		return TunnelRunning
	}
	return TunnelStarting
}

func (t *tunnel) snapshot(state string) Tunnel {
	s := Tunnel{
		ID: t.id, Name: t.spec.Name, Type: t.spec.Type, Mode: t.spec.Mode,
		LocalIP: t.spec.LocalIP, LocalPort: t.spec.LocalPort, LocalScheme: t.spec.LocalScheme,
		Domain: t.spec.Domain, RemotePort: t.spec.RemotePort, HostHeader: t.spec.HostHeader,
		RequestHeaders: t.spec.RequestHeaders, ResponseHeaders: t.spec.ResponseHeaders,
		Paths: append([]definition.Path{}, t.spec.Paths...), Visitors: append([]string{}, t.spec.Visitors...), ProxyProtocol: t.spec.ProxyProtocol, Inspect: t.spec.Inspected(),
		Ephemeral: t.spec.Ephemeral, Declared: t.declared,
		PublicURL: t.grant.PublicURL, State: state, Error: cmp.Or(t.fault, t.failure), CreatedAt: t.created,
	}
	if state == TunnelStarting {
		s.Error = t.delay
	}
	if s.Domain == "" && !t.grant.GivenUp {
		s.Domain = t.grant.Domain
	}
	if s.RemotePort == 0 && !t.grant.GivenUp {
		s.RemotePort = t.grant.RemotePort
	}
	if state == TunnelStopped {
		s.Error = ""
	}
	return s
}

func (t *tunnel) endpoint(state string) Endpoint {
	return Endpoint{
		ID: t.endpointID, TunnelID: t.id, Name: t.spec.Name, Type: t.spec.Type, Mode: t.spec.Mode,
		PublicURL: t.grant.PublicURL, Local: t.forward.Local(), State: state, Since: monotime.Wall(t.since), Error: t.forward.Fault(),
		Connections: t.forward.Connections(), Bytes: t.forward.Bytes(),
	}
}
