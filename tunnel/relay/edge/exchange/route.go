package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"adit/tunnel/relay/edge/backlog"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/wire"
)

// roundTripper sends a request to one of the backends that speak HTTP/2. If one cannot be
// reached and none of the request's body has been sent, it tries the next.
type roundTripper struct{ *Forwarder }

// Route says where a request goes and what the origin is told about it. Leave must be called
// when the request has ended.
type Route struct {
	Endpoint *routing.Endpoint
	Target   string // what the visitor asked for
	Way      message.Way
	Visit    origin.Visit
	Conn     any // the connection that the request came on; see origin.Want

	grpc    bool
	upgrade string             // the protocols that the visitor asks to change to; empty: none
	body    *countedBody       // of the request; nil if there is none
	waits   *backlog.Held      // the data that the visitor sends; nil over HTTP/1 and without a body
	stream  bool               // the change of protocol was requested by extended CONNECT
	h1, h2  []*routing.Backend // by HTTP version, in the order in which to try them
	h2first bool
	only    bool             // there is one backend
	ctx     context.Context  // of what is forwarded by HTTP/2
	w       *Writer          // answers it
	giveUp  func()           // ends the visit
	failed  func(error)      // answers a visitor if the request could not be forwarded by HTTP/2
	used    *routing.Backend // the backend that answered, or was tried last
	held    *routing.Backend // the backend that counts this request
}

// choose sorts the endpoint's backends. A visitor who is signing in on a connection to one of
// them stays with that one.
func (to *Route) choose(r *http.Request) {
	list := to.Endpoint.PickFor(to.Target)
	to.only = len(list) < 2
	if !to.only {
		at := slices.IndexFunc(list, func(b *routing.Backend) bool { return !b.OutOfTurn() && b.Origin().Signs(to.Visit, to.Conn) })
		if at > 0 {
			list = slices.Concat(list[at:at+1], list[:at], list[at+1:])
		}
	}
	to.upgrade = message.Upgrade(r, to.stream)
	for i, b := range list {
		if to.byHTTP2(b) {
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

// byHTTP2 reports whether a backend is spoken to by HTTP/2.
func (to *Route) byHTTP2(b *routing.Backend) bool { return to.grpc || b.HTTP2 && to.upgrade == "" }

// more returns order with the backends that have been attached since, if the agent of the last
// one is gone: its next process may already be there.
func (to *Route) more(order []*routing.Backend) []*routing.Backend {
	last := order[len(order)-1]
	if last.Agent.Session.Err() == nil {
		return order
	}
	for _, b := range to.Endpoint.PickFor(to.Target) {
		if to.byHTTP2(b) == to.byHTTP2(last) && !slices.Contains(order, b) {
			order = append(slices.Clip(order), b) // the list may belong to the endpoint
		}
	}
	return order
}

// take counts the request for b instead of another backend.
func (to *Route) take(b *routing.Backend) {
	to.Leave()
	to.used, to.held = b, b
	b.Take()
	if to.waits != nil {
		to.waits.TakenBy(b.Agent)
	}
}

// Used returns the backend that answered, or was tried last; nil if there was none.
func (to *Route) Used() *routing.Backend { return to.used }

// Leave stops counting the request.
func (to *Route) Leave() {
	if to.held != nil {
		to.held.Leave()
		to.held = nil
	}
}

type routeKey struct{}

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	to := r.Context().Value(routeKey{}).(*Route)
	order := to.h2
	for i := 0; i < len(order); i++ {
		b := order[i]
		to.take(b)
		hints := &interims{w: to.w, changes: b.Answers}
		// r's own context would make httputil pass on interim answers as well.
		out, end := to.attempt(r.WithContext(hints.follow(to.ctx)))
		out = b.Inward(out, &to.Way)
		if b.HostHeader != "" && b.HostHeader != r.Host || b.Unshared || b.Requests != nil || b.Prefix() != "" {
			out = out.Clone(out.Context())
			if b.HostHeader != "" {
				out.Host = b.HostHeader
			}
			if b.Unshared { // the transport pools connections by this name
				out.URL.Host = to.Visit.Visitor.String()
			}
			if b.Requests != nil {
				b.Requests.Request(out)
			}
			if b.Prefix() != "" {
				b.Strip(out, to.Target)
			}
		}
		if to.body != nil {
			to.body.onward = out.Trailer // the trailer of the copy that this backend is sent; nobody is reading the body now
		}
		resp, err := b.Origin().RoundTrip(out)
		if err == nil {
			resp.Body = f.cfg.Backlog.Answer(resp.Body, b.Agent, to.giveUp)
			if resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified {
				resp.Body = noContent{resp.Body}
			}
		}
		hints.end()
		if err == nil && resp.StatusCode < 100 {
			resp.Body.Close()
			return nil, errStatus
		}
		if err == nil {
			f.outward(resp.Header, b, r, to)
			if b.Answers != nil {
				b.Answers.Proxied(resp)
			}
			return resp, nil
		}
		end()
		if i == len(order)-1 {
			order = to.more(order)
		}
		if i == len(order)-1 || !f.tryAnother(to.Endpoint, b, err) || to.body.touched() || r.Context().Err() != nil || !mayRepeat(r.Method, err) {
			return nil, err
		}
	}
	return nil, origin.ErrNoAgent
}

// noContent is the body of an answer without one. If the head gives a length nevertheless (RFC
// 9110, section 8.6), net/http would treat the answer as broken.
type noContent struct{ io.Closer }

func (noContent) Read([]byte) (int, error) { return 0, io.EOF }

// mayRepeat reports whether a request may be sent to another backend. A request that may have
// reached an origin may only be repeated if its method is idempotent (RFC 9110, section
// 9.2.2).
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

// Asks returns the visitor for whom an HTTP/2 request opens a stream; see origin.Config.
func Asks(ctx context.Context) (v origin.Visit, only bool) {
	if to, _ := ctx.Value(routeKey{}).(*Route); to != nil {
		return to.Visit, to.only
	}
	return origin.Visit{}, true
}
