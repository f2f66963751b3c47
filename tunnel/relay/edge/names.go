package edge

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/netip"
	"sync"

	"adit/internal/wildcard"
	"adit/tunnel/relay/edge/clienthello"
)

// maxServed is how many names are remembered.
const maxServed = 10_000

// servedNames remembers the certificates that visitors were given, by the name that they asked
// for; see routing.Table.ShownAs.
type servedNames struct {
	mu     sync.Mutex
	leaves map[string]*x509.Certificate
}

func (s *servedNames) note(name string, leaf *x509.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaves == nil || len(s.leaves) >= maxServed {
		s.leaves = make(map[string]*x509.Certificate)
	}
	s.leaves[name] = leaf
}

func (s *servedNames) get(name string) *x509.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaves[name]
}

// certificate returns the certificate for a handshake.
func (e *Edge) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert, err := e.cfg.Certificates(hello)
	if err == nil && cert != nil && cert.Leaf != nil {
		e.served.note(e.table.ShownAs(clienthello.ServerName(hello.ServerName)), cert.Leaf)
	}
	return cert, err
}

// misdirected reports whether a request for name came on a connection that was opened for
// another name, with a certificate that is not valid for name. Such a request must be refused
// (RFC 9110, section 7.4). Browsers may use one connection for several names of a certificate,
// and visitors that sent no server name are served as well.
func (e *Edge) misdirected(r *http.Request, name string, peer netip.Addr) bool {
	if r.TLS == nil || r.TLS.ServerName == "" || r.TLS.ServerName == name || e.admission.Trusted(peer) {
		return false
	}
	asked := clienthello.ServerName(r.TLS.ServerName)
	if asked == name {
		return false
	}
	leaf := e.served.get(e.table.ShownAs(asked))
	return leaf != nil && leaf.VerifyHostname(name) != nil
}

// claimed reports whether a name belongs to a client, whether or not it is being served.
func (e *Edge) claimed(name string) bool {
	if e.cfg.Claimed(name) {
		return true
	}
	all := wildcard.Of(name)
	return all != "" && e.cfg.Claimed(all) && !e.cfg.Alone(name)
}

// certificate3 returns the certificate for a handshake over QUIC.
func (e *Edge) certificate3(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if e.table.PassThrough(clienthello.ServerName(hello.ServerName)) != nil {
		return nil, nil // the origin ends TLS itself, over TCP
	}
	return e.certificate(hello)
}
