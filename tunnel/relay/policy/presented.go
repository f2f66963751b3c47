package policy

import (
	"crypto/x509"
	"fmt"
	"sync"
	"time"
)

// Presented is what a visitor has presented when its connection was opened, by which
// it has shown that it has the first certificate's key. It remembers what was made of
// it last: a connection has many requests, and verifying costs as much as all else of
// one.
type Presented struct {
	chain []*x509.Certificate

	mu          sync.Mutex
	by          *gate // that gave said; nil: none did
	said        Decision
	from, until time.Time // in which it is so
}

// refusedFor is how long a refusal is remembered: the time may change it.
const refusedFor = 10 * time.Second

// NewPresented returns what a connection's certificates are to policies, the
// visitor's own first; nil if there are none.
func NewPresented(chain []*x509.Certificate) *Presented {
	if len(chain) == 0 {
		return nil
	}
	return &Presented{chain: chain}
}

// ReadPresented reads certificates as PEM.
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

// Label is what logs and people know the visitor by.
func (p *Presented) Label() string { return labelOf(p.chain[0]) }

// Email is the first address that the certificate is for; empty: none.
func (p *Presented) Email() string {
	if list := p.chain[0].EmailAddresses; len(list) > 0 {
		return list[0]
	}
	return ""
}

// verdict is what a gate makes of it now.
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
