package agent

import (
	"context"
	"errors"
	"fmt"
	"net"

	"adit/tunnel/agent/control"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/splice"
	"adit/tunnel/agent/visits"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Visit leads a connection to another client's private tunnel, named CLIENT/NAME, until both
// directions have ended or ctx ends. Once the relay has admitted the visit, Visit calls take for
// the connection, and closes that itself. An error before that is a *refusal.Error with the reason,
// and take is not called.
func (a *Agent) Visit(ctx context.Context, tunnel string, take func() (splice.HalfCloser, error)) error {
	return a.visits.Visit(ctx, tunnel, take)
}

// VisitUDP is like Visit for a tunnel of type udp: it leads the packets of one sender. On the
// connection that take returns, each packet is preceded by its length (uint16, big-endian), in both
// directions.
func (a *Agent) VisitUDP(ctx context.Context, tunnel string, take func() (net.Conn, error)) error {
	return a.visits.VisitUDP(ctx, tunnel, take)
}

// Visits returns the declared visits, by address.
func (a *Agent) Visits() []visits.Visit { return a.visits.List() }

// DeclareVisits replaces the declared visits with those of specs. Unchanged ones are left alone. If
// one is wrong, nothing changes, and a *definition.DeclareError says which. Run keeps them.
func (a *Agent) DeclareVisits(specs []definition.Visit) error { return a.visits.Declare(specs) }

// MayVisit asks the relay whether a private tunnel is running and admits this agent. The tunnel's
// local service is not contacted. Its error is an *Error.
func (a *Agent) MayVisit(ctx context.Context, tunnel string) (Invitation, error) {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	l, client, name, err := a.private(ctx, tunnel)
	if err != nil {
		return Invitation{}, err
	}
	kind, err := l.Control.MayVisit(ctx, client, name)
	if err != nil {
		return Invitation{}, control.Refusal(err, "")
	}
	return Invitation{client + "/" + name, kind}, nil
}

// Invitation is a running private tunnel that admits this agent.
type Invitation struct {
	Tunnel string `json:"tunnel"` // CLIENT/NAME
	Type   string `json:"type"`   // wire.TypeTCP or wire.TypeUDP
}

// Invitations asks the relay which private tunnels of other clients this agent may visit, sorted,
// and wire.MaxInvitations at most. Its error is an *Error.
func (a *Agent) Invitations(ctx context.Context) ([]Invitation, error) {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	l, err := a.sessionWith(ctx, wire.FeatureInvitations, &refusal.Error{
		Code:    refusal.CodeRelayRejected,
		Message: "the relay is too old to list the private tunnels that you may visit; ask its operator to update it",
	})
	if err != nil {
		return nil, err
	}
	tunnels, err := l.Control.Invitations(ctx)
	if err != nil {
		return nil, control.Refusal(err, "")
	}
	list := []Invitation{}
	for _, t := range tunnels {
		list = append(list, Invitation(t))
	}
	return list, nil
}

// private returns the client and the name of a private tunnel, and the session over which to visit
// it. Its error is a *refusal.Error.
func (a *Agent) private(ctx context.Context, tunnel string) (l *live, client, name string, err error) {
	client, name, err = wire.ParsePrivate(tunnel)
	if err != nil {
		return nil, "", "", refusal.Invalid("tunnel", "%v", err)
	}
	l, err = a.sessionWith(ctx, wire.FeaturePrivate, &refusal.Error{
		Code:    refusal.CodeRelayRejected,
		Message: "the relay is too old for private tunnels; ask its operator to update it",
	})
	return l, client, name, err
}

// sessionWith returns a session with a relay that supports a feature; without is the error if the
// relay does not. Its error is an *Error.
func (a *Agent) sessionWith(ctx context.Context, feature string, without *refusal.Error) (*live, error) {
	l, no := a.session(ctx, nil)
	switch {
	case no != nil:
		return nil, no
	case l == nil:
		return nil, isPaused()
	case !l.Control.Can(feature):
		return nil, without
	}
	return l, nil
}

// dialer adapts an Agent to the Dialer that package visits needs.
type dialer struct{ *Agent }

// DialPrivate implements visits.Dialer. Its error is an *Error.
func (d dialer) DialPrivate(ctx context.Context, tunnel string) (link.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	l, client, name, err := d.private(ctx, tunnel)
	if err != nil {
		return nil, err
	}
	stream, err := l.Control.Visit(ctx, client, name)
	if errors.Is(err, link.ErrReset) { // and its reset has overtaken the relay's answer
		return nil, &refusal.Error{
			Code:    refusal.CodeRelayRejected,
			Message: fmt.Sprintf("%s/%s closed the connection before it sent anything; ask its owner whether its local service is running", client, name),
		}
	}
	if err != nil {
		return nil, notLed(err, client, name, `is of type udp; declare the visit with type = "udp", and visit it without --stdio`)
	}
	return stream, nil
}

// notLed says why the relay does not lead a visit to a private tunnel, and names the right type if
// the tunnel has the other one.
func notLed(err error, client, name, other string) *refusal.Error {
	no := control.Refusal(err, "")
	if no.Field == "type" {
		no.Field, no.Message = "", client+"/"+name+" "+other
	}
	return no
}

// DialPrivateUDP implements visits.Dialer. Its error is an *Error.
func (d dialer) DialPrivateUDP(ctx context.Context, tunnel string, answer func([][]byte)) (*visits.Flow, error) {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	l, client, name, err := d.private(ctx, tunnel)
	if err != nil {
		return nil, err
	}
	if !l.Control.Can(wire.FeaturePrivateUDP) {
		return nil, &refusal.Error{
			Code:    refusal.CodeRelayRejected,
			Message: "the relay is too old for private tunnels of any type but tcp; ask its operator to update it",
		}
	}
	stream, number, err := l.Control.VisitUDP(ctx, client, name)
	if errors.Is(err, link.ErrReset) {
		return nil, &refusal.Error{
			Code:    refusal.CodeRelayRejected,
			Message: fmt.Sprintf("the relay ended the visit of %s/%s immediately; ask its owner or the relay's operator whether its policy lets you in now", client, name),
		}
	}
	if err != nil {
		return nil, notLed(err, client, name, `is of type tcp; declare the visit with type = "tcp"`)
	}
	// A session that has been replaced is not kept for flows: the next packet starts another.
	return l.visits.Open(number, stream, l.Retired(), answer), nil
}
