package edge

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/netip"

	"adit/tunnel/relay/edge/clientcert"
	"adit/tunnel/relay/edge/clienthello"
	"adit/tunnel/relay/edge/h3"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// credentialsOf returns the credentials of the connection that a request came on, or nil if it
// has none.
func credentialsOf(ctx context.Context) *clientcert.Credentials {
	if v := visitor.FromContext(ctx); v != nil {
		return &v.Credentials
	}
	return clientcert.FromContext(ctx)
}

// asking returns the configuration for a handshake with a name whose policy admits visitors by
// certificate: the visitor is asked for one, and its validity is judged with each request. A
// handshake that failed instead would leave a browser with nothing to show, and the policy may
// have changed by the next request. For all other names asking returns nil.
func (e *Edge) asking(base *tls.Config, hello *tls.ClientHelloInfo) (*tls.Config, error) {
	ep := e.table.Domain(clienthello.ServerName(hello.ServerName), claims.SlotTLS)
	if hello.ServerName == "" || ep == nil || ep.Type != wire.TypeHTTPS {
		return nil, nil
	}
	p := e.cfg.Policy(ep.Target)
	if p == nil || p.ClientAuthorities() == nil {
		return nil, nil
	}
	c := clientcert.FromContext(hello.Context())
	if v, ok := hello.Conn.(*visitor.Conn); ok {
		c = &v.Credentials
	}
	return clientcert.Ask(base, e.tickets, p, ep.Place(), c), nil
}

// presented returns what the visitor has presented to a name, or nil if that is nothing.
// unasked is true if the connection was opened for another name, or before this name asked for
// certificates, so that the visitor had no chance to present one. It is false for visitors
// that send no server name and for load balancers that end TLS, since a new connection would
// not help them.
func (e *Edge) presented(r *http.Request, name string, peer netip.Addr) (p *policy.Presented, unasked bool) {
	if r.TLS == nil {
		return nil, false
	}
	c := credentialsOf(r.Context())
	if c == nil || !c.Asked() || clienthello.ServerName(r.TLS.ServerName) != name {
		return nil, r.TLS.ServerName != "" && !e.admission.Trusted(peer)
	}
	return c.Show(r.TLS.PeerCertificates), false
}

// retire closes a request's connection after the answer, if the connection was opened for the
// name that was requested: all further requests on it would be refused as well.
func retire(w http.ResponseWriter, r *http.Request) {
	name, _ := message.Host(r.Host)
	if r.TLS == nil || clienthello.ServerName(r.TLS.ServerName) != name {
		return
	}
	if c := h3.FromContext(r.Context()); c != nil {
		c.Retire()
		return
	}
	w.Header().Set("Connection", "close") // over HTTP/2, net/http sends GOAWAY instead
}
