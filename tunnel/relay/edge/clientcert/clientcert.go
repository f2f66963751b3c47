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

// Credentials records what a visitor was asked for when its connection was opened, and what it
// presented.
type Credentials struct {
	requested atomic.Bool // a certificate was requested, for the name in the handshake
	once      sync.Once
	presented *policy.Presented
}

type key struct{}

// NewContext returns a context for a connection, with empty Credentials.
func NewContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, key{}, new(Credentials))
}

// FromContext returns the Credentials from a context made by NewContext, or nil.
func FromContext(ctx context.Context) *Credentials {
	c, _ := ctx.Value(key{}).(*Credentials)
	return c
}

// Asked reports whether the visitor was asked for a certificate.
func (c *Credentials) Asked() bool { return c.requested.Load() }

var errPresented = errors.New("the visitor presents more than it may")

// Ask returns a copy of base for a handshake in which the visitor is asked for a certificate
// from the policy's authorities. place identifies what the policy applies to. keys holds the
// ticket keys for all visitors who were asked. c may be nil.
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

// boundPresented refuses chains larger than any visitor needs, since they are kept for as long
// as the connection lasts and in its tickets.
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

// tickets handles the tickets of sessions in which the visitor was asked for a certificate. A
// resumed session asks for nothing, for as long as tickets last. The tickets therefore have
// separate keys, so that a session without a request for a certificate cannot be resumed at a
// name that asks for one. They are only issued to visitors whom the policy admits, and only
// valid for the same name and the same certificate rules: a visitor who was refused may have
// another certificate next time, and the owner of an origin another authority.
type tickets struct {
	keys   *tls.Config
	policy *policy.Policy
	place  string // of the endpoint
	of     *Credentials
}

// extra identifies what a ticket is valid for.
func (t tickets) extra() []byte {
	rules := t.policy.CertificateRules()
	return append([]byte("adit "+t.place+" "), rules[:]...)
}

func (t tickets) wrap(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
	if t.of == nil || !t.policy.LetsIn(t.of.Show(state.PeerCertificates), time.Now()) {
		return []byte{0}, nil // a ticket that cannot be resumed
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
		return nil, nil // as for an unknown ticket
	}
	session.Extra = slices.DeleteFunc(session.Extra, mine) // wrap adds it again
	return session, nil
}

// Show returns what was presented on the connection. It returns the same value each time.
func (c *Credentials) Show(chain []*x509.Certificate) *policy.Presented {
	c.once.Do(func() { c.presented = policy.NewPresented(chain) })
	return c.presented
}
