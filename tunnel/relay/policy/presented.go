package policy

import (
	"crypto/x509"
	"fmt"
	"sync"
	"time"
)

// Presented holds the certificates that a visitor presented when its connection was
// opened. The visitor has proved that it has the first certificate's key. Presented
// remembers the latest verdict on them: a connection carries many requests, and verifying
// costs as much as everything else that a request needs.
type Presented struct {
	chain []*x509.Certificate

	mu          sync.Mutex
	by          *gate // the gate that said it; nil if none did
	said        Decision
	from, until time.Time // when the verdict holds
}

// refusedFor is how long a refusal is remembered. It may stop being right as time passes.
const refusedFor = 10 * time.Second

// NewPresented returns a connection's certificates for use by policies, the visitor's own
// first. It returns nil if there are none.
func NewPresented(chain []*x509.Certificate) *Presented {
	if len(chain) == 0 {
		return nil
	}
	return &Presented{chain: chain}
}

// ReadPresented parses PEM certificates.
func ReadPresented(text string) (*Presented, error) {
	if len(text) > 2*MaxPresentedBytes {
		return nil, fmt.Errorf("has more than %d KiB", MaxPresentedBytes>>10)
	}
	chain, err := parsePEM(text, MaxPresented)
	if err != nil {
		return nil, err
	}
	return NewPresented(chain), nil
}

// Label returns the name by which logs and people know the visitor.
func (p *Presented) Label() string { return labelOf(p.chain[0]) }

// Email returns the first e-mail address that the certificate is for, or "".
func (p *Presented) Email() string {
	if list := p.chain[0].EmailAddresses; len(list) > 0 {
		return list[0]
	}
	return ""
}

// verdict returns what a gate decides now.
func (p *Presented) verdict(g *gate, now time.Time) Decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == g && !now.Before(p.from) && !now.After(p.until) {
		return p.said
	}
	p.said, p.from, p.until = g.judge(p.chain, now)
	if p.by = g; !p.said.Allowed {
		p.from, p.until = now, now.Add(refusedFor)
	}
	return p.said
}
