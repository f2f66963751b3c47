package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// credentials are what a visitor was asked for when its connection was opened, and
// what it presented.
type credentials struct {
	asked     atomic.Bool // for a certificate, by the name of the handshake
	once      sync.Once
	presented *policy.Presented
}

type credentialsKey struct{}

// credentialsOf returns those of the connection that a request came by; nil: it has
// none.
func credentialsOf(ctx context.Context) *credentials {
	if v, _ := ctx.Value(visitorKey{}).(*visitor); v != nil {
		return &v.credentials
	}
	c, _ := ctx.Value(credentialsKey{}).(*credentials)
	return c
}

var errPresented = errors.New("the visitor presents more than it may")

// asking returns the configuration of a handshake for a name whose policy lets
// visitors in by their certificates: they are asked for one, and it is for their
// requests to tell what it is worth. A handshake that failed instead would leave a
// browser with nothing to show, and the policy may be another by the next request.
// Nil for all other names.
func (e *Edge) asking(base *tls.Config, hello *tls.ClientHelloInfo) (*tls.Config, error) {
	ep := e.domain(serverName(hello.ServerName), store.SlotTLS)
	if hello.ServerName == "" || ep == nil || ep.Type != wire.TypeHTTPS {
		return nil, nil
	}
	p := e.cfg.Policy(ep.Target)
	if p == nil || p.ClientAuthorities() == nil {
		return nil, nil
	}
	if v, ok := hello.Conn.(*visitor); ok {
		v.credentials.asked.Store(true)
	} else if c, ok := hello.Context().Value(credentialsKey{}).(*credentials); ok {
		c.asked.Store(true)
	}
	conf := base.Clone()
	conf.GetConfigForClient = nil
	conf.ClientAuth, conf.ClientCAs = tls.RequestClientCert, p.ClientAuthorities()
	conf.VerifyPeerCertificate = boundPresented
	conf.WrapSession, conf.UnwrapSession = e.wrapSession, e.tickets.DecryptTicket
	return conf, nil
}

// boundPresented refuses to keep, as long as the connection lasts and in its tickets,
// what no visitor has need to present.
func boundPresented(chain [][]byte, _ [][]*x509.Certificate) error {
	bytes := 0
	for _, c := range chain {
		bytes += len(c)
	}
	if len(chain) > policy.MaxPresented || bytes > policy.MaxPresentedBytes {
		return errPresented
	}
	return nil
}

// wrapSession makes the ticket of a session in which the visitor was asked for a
// certificate. Such tickets have keys of their own: a session in which nobody asked
// must not be taken up again at a name that asks, nor one in which the visitor had
// none. It would not be asked then, for as long as tickets last.
func (e *Edge) wrapSession(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
	if len(state.PeerCertificates) == 0 {
		return []byte{0}, nil // no ticket that can be taken up
	}
	return e.tickets.EncryptTicket(state, session)
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
	if c == nil || !c.asked.Load() || serverName(r.TLS.ServerName) != name {
		return nil, r.TLS.ServerName != "" && !e.trusted(peer)
	}
	c.once.Do(func() { c.presented = policy.NewPresented(r.TLS.PeerCertificates) })
	return c.presented, false
}

// retire ends the connection of a request when it is answered, if it was opened for
// the name that was asked for: all that is asked by it would be refused.
func (h *handler) retire(w http.ResponseWriter, r *http.Request) {
	name, _ := hostName(r.Host)
	if r.TLS == nil || serverName(r.TLS.ServerName) != name {
		return
	}
	if c, ok := r.Context().Value(quicConnKey{}).(*quicConn); ok {
		c.retire()
		return
	}
	w.Header().Set("Connection", "close") // by HTTP/2 net/http says GOAWAY
}
