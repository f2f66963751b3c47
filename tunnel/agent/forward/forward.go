// Package forward leads the visitors that the relay sends over a session to the local services of
// tunnels, as streams or as flows of datagrams, and shows the traffic to the inspector. It records
// which services cannot be reached and retries them until they can. It is told which tunnels there
// are and their numbers on a session; how to reach a service is left to package origin.
package forward

import (
	"context"
	"log/slog"

	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/splice"
	"adit/tunnel/agent/traffic"
	"adit/tunnel/wire"
)

// Config is what a Forwarder needs; all fields are required.
type Config struct {
	Origins   *origin.Dialer
	Inspector *inspect.Inspector
	Logger    *slog.Logger
	// Activity, which must have room for one value, gets one when visitors come or go, when traffic
	// passes, and when a service becomes reachable or unreachable.
	Activity chan<- struct{}
	// Complain is called with the reason why a visitor of a tunnel did not reach its service.
	Complain func(id, name, message string)
}

// Forwarder forwards visitors.
type Forwarder struct {
	origins   *origin.Dialer
	inspector *inspect.Inspector
	log       *slog.Logger
	activity  chan<- struct{}
	complain  func(id, name, message string)
	passed    traffic.Counters // of all tunnels; its bytes alone
	faults    chan struct{}    // has KeepLooking begin anew; room for one
}

// New returns a Forwarder.
func New(cfg Config) *Forwarder {
	return &Forwarder{
		origins: cfg.Origins, inspector: cfg.Inspector, log: cfg.Logger, activity: cfg.Activity, complain: cfg.Complain,
		faults: make(chan struct{}, 1),
	}
}

// Bytes counts the traffic of all visitors.
func (f *Forwarder) Bytes() traffic.Bytes { return f.passed.Bytes() }

// active signals activity.
func (f *Forwarder) active() {
	select {
	case f.activity <- struct{}{}:
	default:
	}
}

// trouble reports why a visitor of r did not reach its service.
func (f *Forwarder) trouble(r *route, message string) { f.complain(r.id, r.name, message) }

// dial connects to a route's local service for a stream of that kind. If there is a header, it is
// sent before everything else. Its errors are written for people.
func (f *Forwarder) dial(ctx context.Context, r *route, kind wire.StreamKind, header []byte) (splice.HalfCloser, error) {
	conn, err := f.origins.Dial(ctx, r.service, header, kind == wire.StreamRaw) // on which the edge speaks HTTP/2
	if ctx.Err() == nil {                                                       // else it was not waited for
		f.reached(r, err)
	}
	return conn, err
}
