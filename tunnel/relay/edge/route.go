package edge

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"adit/tunnel/relay/edge/backlog"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/wire"
)

// roundTripper sends a request to one of the backends that speak HTTP/2. While
// nothing of the request's body is gone, the next is tried where one cannot be
// reached.
type roundTripper struct{}

// route is what the handler has found for a request.
type route struct {
	edge     *Edge
	endpoint *routing.Endpoint
	target   string // what the visitor asks for
	forward  message.Way
	visit    origin.Visit
	grpc     bool
	body     *countedBody       // of the request; nil without one
	waits    *backlog.Held      // of what the visitor sends; nil by HTTP/1, and without a body
	stream   bool               // a change of protocol was asked for by extended CONNECT
	h1, h2   []*routing.Backend // by how they are spoken to, in the order in which to try them
	h2first  bool
	only     bool             // there is one backend
	giveUp   func()           // ends the visit
	failed   func(error)      // answers a visitor whose request could not be forwarded by HTTP/2
	used     *routing.Backend // who answered, or was tried last
	held     *routing.Backend // whose visitors this is counted among
}

// choose sorts the endpoint's backends.
func (to *route) choose(r *http.Request) {
	list := to.endpoint.PickFor(to.target)
	to.only = len(list) < 2
	upgrade := message.Upgrade(r, to.stream) != ""
	for i, b := range list {
		if to.grpc || b.HTTP2 && !upgrade {
			to.h2first = to.h2first || i == 0
			if to.h2 == nil {
				to.h1, to.h2 = slices.Clone(list[:i]), make([]*routing.Backend, 0, len(list))
			}
			to.h2 = append(to.h2, b)
		} else if to.h2 != nil {
			to.h1 = append(to.h1, b)
		}
	}
	if to.h2 == nil {
		to.h1 = list
	}
}

// onward reports whether a request that could not be forwarded may go to a
// backend that is spoken to in another way.
func (to *route) onward(ctx context.Context, r *http.Request, err error) bool {
	return ctx.Err() == nil && !to.body.touched() && mayRepeat(r.Method, err) && to.used != nil &&
		to.edge.tryAnother(to.endpoint, to.used, err)
}

// take counts the request among b's visitors in place of another's.
func (to *route) take(b *routing.Backend) {
	to.leave()
	to.used, to.held = b, b
	b.Take()
	if to.waits != nil {
		to.waits.TakenBy(b.Agent)
	}
}

func (to *route) leave() {
	if to.held != nil {
		to.held.Leave()
		to.held = nil
	}
}

type routeKey struct{}

func (roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	to := r.Context().Value(routeKey{}).(*route)
	order := to.h2
	for i, b := range order {
		to.take(b)
		out, end := to.attempt(r)
		if b.HostHeader != "" && b.HostHeader != r.Host || b.Unshared || b.Requests != nil || b.Answers != nil || b.Prefix() != "" {
			out = out.Clone(b.Answers.Follow(r.Context()))
			if b.HostHeader != "" {
				out.Host = b.HostHeader
			}
			if b.Unshared { // the transport pools by this name
				out.URL.Host = to.visit.Visitor.String()
			}
			if b.Requests != nil {
				b.Requests.Request(out)
			}
			if b.Prefix() != "" {
				b.Strip(out, to.target)
			}
		}
		if to.body != nil {
			to.body.onward = out.Trailer // the copy's, which this backend is sent; nobody reads the body now
		}
		resp, err := b.Origin().RoundTrip(out)
		if err == nil && resp.StatusCode < 100 {
			resp.Body.Close()
			return nil, errStatus
		}
		if err == nil {
			resp.Body = to.edge.backlog.Answer(resp.Body, b.Agent, to.giveUp)
			if b.Answers != nil {
				b.Answers.Proxied(resp)
			}
			return resp, nil
		}
		end()
		if i == len(order)-1 || !to.edge.tryAnother(to.endpoint, b, err) || to.body.touched() || r.Context().Err() != nil || !mayRepeat(r.Method, err) {
			return nil, err
		}
	}
	return nil, origin.ErrNoAgent
}

// tryAnother reports whether err says that the backend cannot be reached, and
// takes one whose origin is down out of turn.
func (e *Edge) tryAnother(ep *routing.Endpoint, b *routing.Backend, err error) bool {
	var down *wire.OriginError
	if errors.As(err, &down) {
		e.table.TakeOut(ep, b)
		return true
	}
	return errors.Is(err, origin.ErrNoAgent) || b.Agent.Session.Err() != nil
}

// mayRepeat reports whether a request may be sent to another backend: what has
// perhaps reached an origin may only if it says that twice is as good as once
// (RFC 9110, section 9.2.2).
func mayRepeat(method string, err error) bool {
	var down *wire.OriginError
	if errors.Is(err, origin.ErrNoAgent) || errors.As(err, &down) {
		return true
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// asks says for whom a request by HTTP/2 opens a stream; see origin.Config.
func asks(ctx context.Context) (v origin.Visit, only bool) {
	if to, _ := ctx.Value(routeKey{}).(*route); to != nil {
		return to.visit, to.only
	}
	return origin.Visit{}, true
}
