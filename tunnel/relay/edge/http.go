package edge

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"adit/tunnel/relay/edge/exchange"
	"adit/tunnel/relay/edge/h3"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/pages"
	"adit/tunnel/relay/edge/presence"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/edge/websocket"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// maxTrailers is how many trailers a request may announce. One header line has room for
// thousands, each of which takes memory for as long as the request is served.
const maxTrailers = 64

// handler serves the requests of one public HTTP listener.
type handler struct {
	edge   *Edge
	secure bool
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, start := h.edge, time.Now()
	e.admission.Working(r.Context())
	if !h.secure && e.cfg.Challenge != nil && e.cfg.Challenge(w, r) {
		return
	}
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	remote = visitor.Clean(remote)
	client := message.Client(r, remote.Addr(), e.admission.Trusted)
	place, in := e.admission.Crowd(w, r, client, client == remote.Addr())
	if !in {
		return
	}
	defer place.Leave()
	if r, err := bodyOrNone(w, r, e.limits.HeaderTime); err != nil {
		e.refuseLate(w, r)
	} else {
		h.answer(w, r, start, remote, client)
	}
	place.End(w)
}

// answer serves the request of a visitor at remote, whose address is taken to be client.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, start time.Time, remote netip.AddrPort, client netip.Addr) {
	e := h.edge
	name, ok := message.Host(r.Host)
	if !ok {
		e.pages.Answer(w, r, pages.Page{Status: http.StatusBadRequest, Title: "The request has no host", Text: "Its Host header is missing or invalid."})
		return
	}
	if h.secure && e.misdirected(r, name, remote.Addr()) {
		e.refuseMisdirected(w, r)
		return
	}
	if s := e.cfg.SignIn; s != nil && name == s.Host() {
		s.Return(w, r, e.pages.AnswerText)
		return
	}
	target, fits := message.Target(r)
	ep := h.find(name)
	if ep == nil && e.table.Await(r.Context(), name, h.slots()...) {
		ep = h.find(name)
	}
	if ep == nil {
		h.unknown(w, r, name, target)
		return
	}
	protocol := websocket.Protocol(r)
	switch {
	case protocol != "" && protocol != websocket.Name:
		e.pages.Answer(w, r, pages.Page{Status: http.StatusNotImplemented, Title: "This protocol is not supported here"})
		return
	case protocol == "" && r.Method == http.MethodConnect:
		e.pages.Answer(w, r, pages.Page{Status: http.StatusMethodNotAllowed, Title: "CONNECT is not supported here"})
		return
	// A method is a token (RFC 9110, section 9.1). Over HTTP/2, net/http accepts any text, and
	// a space in it would alter the request line that the origin gets.
	case !httpguts.ValidHeaderFieldName(r.Method):
		e.pages.Answer(w, r, pages.Page{Status: http.StatusBadRequest, Title: "The request's method is invalid"})
		return
	case !fits:
		e.pages.Answer(w, r, pages.Page{Status: http.StatusBadRequest, Title: "The request's target is invalid", Text: "It is neither a path nor a URL."})
		return
	case len(r.Trailer) > maxTrailers:
		e.pages.Answer(w, r, pages.Page{Status: http.StatusRequestHeaderFieldsTooLarge, Title: "The request has too many trailers"})
		return
	case message.Loops(r, e.cfg.Name):
		e.pages.Answer(w, r, pages.Page{Status: http.StatusLoopDetected, Title: "This address leads back to itself", Text: "The service behind it requests the same address from the relay, in an endless loop."})
		return
	case protocol == websocket.Name:
		w, r = websocket.Upgrade(w, r)
	}
	ep.Begin()
	defer ep.End()
	cw := exchange.NewWriter(w, &ep.Meter, r)
	if h.secure && r.ProtoMajor < 3 && !e.admission.Trusted(remote.Addr()) { // behind a load balancer, the visitor is connected to that
		cw.AltSvc = e.altSvc
	}
	to := &exchange.Route{Endpoint: ep, Target: target, Visit: origin.Visit{Visitor: netip.AddrPortFrom(client, remote.Port()), Authority: name}}
	defer to.Leave()
	to.Conn, _ = windowOf(r)
	if local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr); local != nil {
		to.Visit.Edge = visitor.AddrPort(local)
	}
	to.Way = message.WayOf(r, e.cfg.Name, remote.Addr(), e.admission.Trusted(remote.Addr()), h.secure)
	refused := h.guard(cw, r, to, func(ctx context.Context, r *http.Request) {
		e.takeCookies(r)
		e.forwarder.Forward(ctx, cw, r, to)
	})
	took := time.Since(start)
	if at := cw.Answered(); !at.IsZero() {
		took = at.Sub(start)
	}
	in, out := cw.Bytes()
	e.cfg.Record(ep, to.Used(), wire.Access{
		Time: start.UTC(), Endpoint: ep.ID(), Visitor: client.String(), User: to.Way.Who.Name(), Method: r.Method, Host: name, Path: r.URL.Path,
		Status: cw.Code(), Refused: refused, BytesIn: in, BytesOut: out, Duration: took,
	})
	if cw.Aborted() { // the visitor must be able to tell that the response is incomplete
		panic(http.ErrAbortHandler)
	}
}

// requestWindow is how many bytes of HTTP/2 requests one connection may send ahead of their
// readers. For HTTP/3 it is h3.Window.
const requestWindow = 1 << 20

// windowOf returns the connection whose flow-control window a request shares with others, and
// how many bytes may be sent ahead of the readers.
func windowOf(r *http.Request) (conn any, window int64) {
	if r.ProtoMajor == 3 {
		return h3.FromContext(r.Context()), h3.Window
	}
	return visitor.FromContext(r.Context()), requestWindow
}

// slots returns the slots of the sites that this listener answers for, if only to redirect to
// the other listener.
func (h *handler) slots() []string {
	if h.secure {
		return []string{claims.SlotTLS}
	}
	return []string{claims.SlotPlain, claims.SlotTLS}
}

// find returns the endpoint that serves a name on this listener.
func (h *handler) find(name string) *routing.Endpoint {
	if !h.secure {
		return h.edge.table.Domain(name, claims.SlotPlain)
	}
	if ep := h.edge.table.Domain(name, claims.SlotTLS); ep != nil && ep.Type == wire.TypeHTTPS {
		return ep
	}
	return nil
}

// secured reports whether a name has a site with TLS but none without.
func (e *Edge) secured(name string) bool {
	ep := e.table.Domain(name, claims.SlotTLS)
	return ep != nil && ep.Type == wire.TypeHTTPS && e.table.Domain(name, claims.SlotPlain) == nil
}

// unknown answers a request for a name that no endpoint serves on this listener.
func (h *handler) unknown(w http.ResponseWriter, r *http.Request, name, target string) {
	e := h.edge
	ep := e.table.Domain(name, claims.SlotTLS)
	if h.secure && ep != nil { // the origin ends TLS itself, on another connection
		e.refuseMisdirected(w, r)
		return
	}
	if e.secured(name) && strings.HasPrefix(target, "/") {
		host := name
		if e.cfg.HTTPSPort != 0 && e.cfg.HTTPSPort != 443 {
			host = net.JoinHostPort(name, strconv.Itoa(e.cfg.HTTPSPort))
		}
		w.Header().Set("Cache-Control", "no-store") // or browsers keep the redirect for ever, whatever becomes of the name
		http.Redirect(w, r, "https://"+host+target, http.StatusPermanentRedirect)
		return
	}
	e.unknown.Add(1)
	switch { // cases in which the agent is connected
	case h.secure && e.table.Domain(name, claims.SlotPlain) != nil:
		e.pages.Answer(w, r, pages.Page{Status: http.StatusNotFound, Title: "There is no site at this address", Text: "The name is served by a tunnel of type http: its address begins with http://."})
		return
	case ep != nil && ep.Type == wire.TypeTLS:
		e.pages.Answer(w, r, pages.Page{Status: http.StatusNotFound, Title: "There is no site at this address", Text: "The name is served by a tunnel of type tls, which visitors must reach by TLS."})
		return
	}
	if e.claimed(name) {
		w.Header().Set("Retry-After", "5")
		e.pages.Answer(w, r, pages.Page{Status: http.StatusServiceUnavailable, Title: "This site is offline", Text: "The address is known here, but the computer that serves it is not connected now."})
		return
	}
	e.pages.Answer(w, r, pages.Page{Status: http.StatusNotFound, Title: "There is no site at this address", Text: "No tunnel serves this name here."})
}

// refuseCrowd answers a request that exceeds the limit of its visitor's address.
func (e *Edge) refuseCrowd(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	e.pages.Answer(w, r, pages.Page{Status: http.StatusTooManyRequests, Title: http.StatusText(http.StatusTooManyRequests), Text: policy.Text(policy.RulePerAddress)})
}

// refuseLate answers a request that did not arrive completely in time.
func (e *Edge) refuseLate(w http.ResponseWriter, r *http.Request) {
	e.pages.Answer(w, r, pages.Page{Status: http.StatusRequestTimeout, Title: "The request is incomplete"})
}

// refuseMisdirected makes a browser repeat the request on a separate connection.
func (e *Edge) refuseMisdirected(w http.ResponseWriter, r *http.Request) {
	e.pages.Answer(w, r, pages.Page{Status: http.StatusMisdirectedRequest, Title: "This connection was made for another site", Text: "Use a separate connection for this site."})
}

var tooLate = pages.Page{Status: http.StatusGatewayTimeout, Title: "The site took too long to answer", Text: "Its local service was reached but sent nothing in time."}

// explain answers a visitor whose request could not be forwarded.
func (e *Edge) explain(w *exchange.Writer, r *http.Request, err error) {
	var refused presence.RefusedError
	if errors.As(w.Visit.Why(), &refused) {
		w.Refused = refused.Rule
		e.refusePolicy(w, r, refused.Rule)
		return
	}
	var down *wire.OriginError
	var tooLarge *http.MaxBytesError
	var timeout net.Error
	p := pages.Page{Status: http.StatusBadGateway, Title: "The site did not answer", Text: "The computer that serves it is connected, but its local service closed the connection or sent an invalid HTTP response."}
	switch {
	case errors.As(err, &down):
		// The reason contains addresses of the network behind the agent. It is for the agent's
		// log and the relay's, not for strangers.
		p.Title, p.Text = "The site's service is down", "The computer that serves it is connected, but the local service behind it does not answer. Its owner can find the reason in adit's log."
	case errors.Is(err, origin.ErrNoAgent), errors.Is(err, net.ErrClosed):
		w.Header().Set("Retry-After", "5")
		p = pages.Page{Status: http.StatusServiceUnavailable, Title: "This site is offline", Text: "The address is known here, but the computer that serves it is not connected now."}
	case errors.As(err, &tooLarge):
		p = pages.Page{Status: http.StatusRequestEntityTooLarge, Title: "The request is too large", Text: "This site accepts at most " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes."}
	case errors.Is(w.Visit.Why(), presence.ErrStill):
		p = tooLate
	case errors.Is(w.Visit.Why(), presence.ErrTooMuch):
		w.Header().Set("Retry-After", "5")
		p = pages.Page{Status: http.StatusServiceUnavailable, Title: "The request was aborted", Text: "The site's local service did not accept it fast enough."}
	case errors.Is(err, context.Canceled):
		p = pages.Page{Status: 499, Title: "The request was aborted"}
	case errors.Is(err, exchange.ErrTorn):
		p = pages.Page{Status: http.StatusBadRequest, Title: "The request is incomplete", Text: "Its body is not what its header announces."}
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		p = tooLate
	}
	e.log.Debug("forward", "host", r.Host, "status", p.Status, "error", err)
	e.pages.Answer(w, r, p)
}
