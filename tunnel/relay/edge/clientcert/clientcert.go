// Package clientcert asks visitors for certificates during the TLS handshake and keeps what
// they present. A policy then decides, for each request, what the certificates are worth.
package clientcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/tunnel/relay/policy"
)

// Credentials are what a visitor was asked for when its connection was opened, and
// what it presented.
type Credentials struct {
	requested atomic.Bool // for a certificate, by the name of the handshake
	once      sync.Once
	presented *policy.Presented
}

type key struct{}

// NewContext returns a context of a connection whose visitor has none yet.
func NewContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, new(Credentials))
}

// FromContext returns those of a context of NewContext; nil: it is none.
func FromContext(ctx context.Context) *Credentials {
	c, _ := ctx.Value(key{}).(*Credentials)
	return c
}

// Asked reports whether the visitor was asked for a certificate.
func (c *Credentials) Asked() bool { return c.requested.Load() }

var errPresented = errors.New("the visitor presents more than it may")

// Ask returns base for a handshake in which a visitor is asked for a certificate
// of the policy's authorities. place is what the policy is of, and keys has the keys
// of all tickets of those who were asked. c may be nil.
func Ask(base, keys *tls.Config, p *policy.Policy, place string, c *Credentials) *tls.Config {
	if c != nil {
		c.requested.Store(true)
	}
	conf := base.Clone()
	conf.GetConfigForClient = nil
	conf.ClientAuth, conf.ClientCAs = tls.RequestClientCert, p.ClientAuthorities()
	conf.VerifyPeerCertificate = boundPresented
	tickets := tickets{keys: keys, policy: p, place: place, of: c}
	conf.WrapSession, conf.UnwrapSession = tickets.wrap, tickets.unwrap
	return conf
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
	of     *Credentials
}

// extra is what a ticket is for.
func (t tickets) extra() []byte {
	rules := t.policy.CertificateRules()
	return append([]byte("adit "+t.place+" "), rules[:]...)
}

func (t tickets) wrap(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
	if t.of == nil || !t.policy.LetsIn(t.of.Show(state.PeerCertificates), time.Now()) {
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

// Show returns what was presented on the connection, which is the same each time.
func (c *Credentials) Show(chain []*x509.Certificate) *policy.Presented {
	c.once.Do(func() { c.presented = policy.NewPresented(chain) })
	return c.presented
}
