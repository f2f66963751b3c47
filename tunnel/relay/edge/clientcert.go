package edge

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/tunnel/relay/edge/message"
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
	c, _ := hello.Context().Value(credentialsKey{}).(*credentials)
	if v, ok := hello.Conn.(*visitor); ok {
		c = &v.credentials
	}
	if c != nil {
		c.asked.Store(true)
	}
	conf := base.Clone()
	conf.GetConfigForClient = nil
	conf.ClientAuth, conf.ClientCAs = tls.RequestClientCert, p.ClientAuthorities()
	conf.VerifyPeerCertificate = boundPresented
	tickets := tickets{keys: e.tickets, policy: p, place: ep.place(), of: c}
	conf.WrapSession, conf.UnwrapSession = tickets.wrap, tickets.unwrap
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

// tickets are those of sessions in which the visitor was asked for a certificate. They
// have keys of their own, for a session in which nobody asked must not be taken up again
// at a name that asks. It would not be asked then, for as long as tickets last: so there
// are none for who is not let in by what it has presented, and none is good for another
// name, or once the policy lets others in. Whoever was refused may have another
// certificate by then, and an origin's owner another authority.
type tickets struct {
	keys   *tls.Config
	policy *policy.Policy
	place  string // of the endpoint
	of     *credentials
}

// extra is what a ticket is for.
func (t tickets) extra() []byte {
	rules := t.policy.CertificateRules()
	return append([]byte("adit "+t.place+" "), rules[:]...)
}

func (t tickets) wrap(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
	if t.of == nil || !t.policy.LetsIn(t.of.show(state.PeerCertificates), time.Now()) {
		return []byte{0}, nil // no ticket that can be taken up
	}
	session.Extra = append(session.Extra, t.extra())
	return t.keys.EncryptTicket(state, session)
}

func (t tickets) unwrap(identity []byte, state tls.ConnectionState) (*tls.SessionState, error) {
	session, err := t.keys.DecryptTicket(identity, state)
	if err != nil || session == nil {
		return nil, err
	}
	mine := func(extra []byte) bool { return bytes.Equal(extra, t.extra()) }
	if !slices.ContainsFunc(session.Extra, mine) {
		return nil, nil // as one that is not known
	}
	session.Extra = slices.DeleteFunc(session.Extra, mine) // wrap adds it again
	return session, nil
}

// show returns what was presented on the connection, which is the same each time.
func (c *credentials) show(chain []*x509.Certificate) *policy.Presented {
	c.once.Do(func() { c.presented = policy.NewPresented(chain) })
	return c.presented
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
	return c.show(r.TLS.PeerCertificates), false
}

// retire ends the connection of a request when it is answered, if it was opened for
// the name that was asked for: all that is asked by it would be refused.
func (h *handler) retire(w http.ResponseWriter, r *http.Request) {
	name, _ := message.Host(r.Host)
	if r.TLS == nil || serverName(r.TLS.ServerName) != name {
		return
	}
	if c, ok := r.Context().Value(quicConnKey{}).(*quicConn); ok {
		c.retire()
		return
	}
	w.Header().Set("Connection", "close") // by HTTP/2 net/http says GOAWAY
}
