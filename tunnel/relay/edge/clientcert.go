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

// credentialsOf returns those of the connection that a request came by; nil: it has
// none.
func credentialsOf(ctx context.Context) *clientcert.Credentials {
	if v := visitor.FromContext(ctx); v != nil {
		return &v.Credentials
	}
	return clientcert.FromContext(ctx)
}

// asking returns the configuration of a handshake for a name whose policy lets
// visitors in by their certificates: they are asked for one, and it is for their
// requests to tell what it is worth. A handshake that failed instead would leave a
// browser with nothing to show, and the policy may be another by the next request.
// Nil for all other names.
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

// presented returns what the visitor has presented to a name; nil: nothing. It
// reports true if the connection was opened for another name, or before this one
// asked for certificates, so that the visitor has had no choice. Whoever names no
// host, and a load balancer that ends TLS, could not do better by another connection.
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

// retire ends the connection of a request when it is answered, if it was opened for
// the name that was asked for: all that is asked by it would be refused.
func retire(w http.ResponseWriter, r *http.Request) {
	name, _ := message.Host(r.Host)
	if r.TLS == nil || clienthello.ServerName(r.TLS.ServerName) != name {
		return
	}
	if c := h3.FromContext(r.Context()); c != nil {
		c.Retire()
		return
	}
	w.Header().Set("Connection", "close") // by HTTP/2 net/http says GOAWAY
}
