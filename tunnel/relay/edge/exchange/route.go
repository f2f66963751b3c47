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

// roundTripper sends a request to one of the backends that speak HTTP/2. While
// nothing of the request's body is gone, the next is tried where one cannot be
// reached.
type roundTripper struct{ *Forwarder }

// Route is what was found for a request: where it goes, and what the origin is told of
// it. It is to be left when the request has ended.
type Route struct {
	Endpoint *routing.Endpoint
	Target   string // what the visitor asks for
	Way      message.Way
	Visit    origin.Visit
	Conn     any // that the request came by; see origin.Want

	grpc    bool
	upgrade string             // the protocol that the visitor asks to change to; empty: none
	body    *countedBody       // of the request; nil without one
	waits   *backlog.Held      // of what the visitor sends; nil by HTTP/1, and without a body
	stream  bool               // a change of protocol was asked for by extended CONNECT
	h1, h2  []*routing.Backend // by how they are spoken to, in the order in which to try them
	h2first bool
	only    bool             // there is one backend
	ctx     context.Context  // of what is forwarded by HTTP/2
	w       *Writer          // answers it
	giveUp  func()           // ends the visit
	failed  func(error)      // answers a visitor whose request could not be forwarded by HTTP/2
	used    *routing.Backend // who answered, or was tried last
	held    *routing.Backend // whose visitors this is counted among
}

// choose sorts the endpoint's backends. Who signs in by a connection to one goes on there.
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

// more returns order with what has come behind the endpoint since, where the last one's
// agent is gone: its next process may be there already.
func (to *Route) more(order []*routing.Backend) []*routing.Backend {
	last := order[len(order)-1]
	if last.Agent.Session.Err() == nil {
		return order
	}
	for _, b := range to.Endpoint.PickFor(to.Target) {
		if to.byHTTP2(b) == to.byHTTP2(last) && !slices.Contains(order, b) {
			order = append(slices.Clip(order), b) // the list may be the endpoint's own
		}
	}
	return order
}

// take counts the request among b's visitors in place of another's.
func (to *Route) take(b *routing.Backend) {
	to.Leave()
	to.used, to.held = b, b
	b.Take()
	if to.waits != nil {
		to.waits.TakenBy(b.Agent)
	}
}

// Used is who answered, or was tried last; nil: nobody was.
func (to *Route) Used() *routing.Backend { return to.used }

// Leave counts the request among nobody's visitors any more.
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
		// Not r's own context: httputil would pass on interim answers from it.
		out, end := to.attempt(r.WithContext(hints.follow(to.ctx)))
		out = b.Inward(out, &to.Way)
		if b.HostHeader != "" && b.HostHeader != r.Host || b.Unshared || b.Requests != nil || b.Prefix() != "" {
			out = out.Clone(out.Context())
			if b.HostHeader != "" {
				out.Host = b.HostHeader
			}
			if b.Unshared { // the transport pools by this name
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
			to.body.onward = out.Trailer // the copy's, which this backend is sent; nobody reads the body now
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

// noContent is the body of an answer that has none. Where its head tells a length
// nevertheless (RFC 9110, section 8.6), net/http takes the answer for broken.
type noContent struct{ io.Closer }

func (noContent) Read([]byte) (int, error) { return 0, io.EOF }

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

// Asks says for whom a request by HTTP/2 opens a stream; see origin.Config.
func Asks(ctx context.Context) (v origin.Visit, only bool) {
	if to, _ := ctx.Value(routeKey{}).(*Route); to != nil {
		return to.Visit, to.only
	}
	return origin.Visit{}, true
}
