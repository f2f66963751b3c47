// Package lookup resolves names to addresses, even if the network's DNS is slow or fails: a relay
// whose name does not resolve is as far away as one that cannot be reached.
package lookup

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// later is how long the addresses of one family are waited for once those of the
	// other are there. Many a home router never answers for IPv6, and a system's
	// resolver asks for 10 s and more before it gives up.
	later = 300 * time.Millisecond
	// patience is how long an answer is waited for where one of before is known.
	patience = time.Second
	// limit bounds a question, which goes on when nobody waits for it any more, so
	// that a late answer is of use to the next who asks; if it is kept.
	limit = 15 * time.Second
	// most is how many names are kept.
	most = 64
)

// Resolver looks names up and remembers the results. The zero value is ready for use and uses the
// system's resolver. It is safe for concurrent use.
type Resolver struct {
	// Lookup looks up the addresses of one family, "ip4" or "ip6". If nil, net.DefaultResolver is
	// used.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// Forgetful disables remembering, so that there are no earlier addresses to fall back on. They
	// may belong to somebody else by now, so they should be tried only for a peer that proves its
	// identity.
	Forgetful bool

	mu    sync.Mutex
	names map[string]*known
}

// families in the order of their addresses in an answer.
var families = [...]string{"ip6", "ip4"}

// known is what a name's last answers had, by family.
type known [len(families)][]netip.Addr

// question is one that is asked. Each caller asks anew: the network may be another by
// now, and with it the server that does not answer.
type question struct {
	done  chan struct{}
	addrs []netip.Addr // when done
	err   error        // when done
}

// LookupNetIP returns the addresses of host. If one family has been found and the other takes long,
// the found one is enough. If the lookup fails, it returns the addresses of the last successful one
// together with the error, a *net.DNSError. network is "ip".
func (r *Resolver) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	asked, known := r.ask(ctx, host)
	var found, waited <-chan time.Time
	if known {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		waited = timer.C
	}
	six, four := asked[0].done, asked[1].done
	for six != nil || four != nil {
		var q *question
		select {
		case <-six:
			q, six = asked[0], nil
		case <-four:
			q, four = asked[1], nil
		case <-found:
			return r.answer(host, asked)
		case <-waited:
			return r.answer(host, asked)
		case <-ctx.Done():
			return nil, &net.DNSError{Name: host, Err: ctx.Err().Error(), UnwrapErr: ctx.Err(), IsTimeout: true}
		}
		if len(q.addrs) > 0 && found == nil {
			timer := time.NewTimer(later)
			defer timer.Stop()
			found = timer.C
		}
	}
	return r.answer(host, asked)
}

// ask has host looked up, and reports whether an answer of before is known.
func (r *Resolver) ask(ctx context.Context, host string) (asked [len(families)]*question, known bool) {
	if !r.Forgetful {
		ctx = context.WithoutCancel(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, family := range families {
		q := &question{done: make(chan struct{})}
		asked[i] = q
		known = known || r.names[host] != nil && len(r.names[host][i]) > 0
		go func() { // ends with its limit
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			q.addrs, q.err = r.lookup(ctx, family, host)
			if len(q.addrs) > 0 && !r.Forgetful {
				r.keep(host, i, q.addrs)
			}
			close(q.done)
		}()
	}
	return asked, known
}

// keep has the addresses of one family ready for when there is no answer.
func (r *Resolver) keep(host string, family int, addrs []netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[host] == nil {
		if r.names == nil {
			r.names = make(map[string]*known)
		}
		for other := range r.names {
			if len(r.names) < most {
				break
			}
			delete(r.names, other) // whichever: no agent has so many relays
		}
		r.names[host] = new(known)
	}
	r.names[host][family] = addrs
}

func (r *Resolver) lookup(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if r.Lookup != nil {
		return r.Lookup(ctx, network, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, network, host)
}

// answer is what there is now. A family of which nothing was heard has the addresses
// that it had; one that the name does not have has none, unless the other has none
// either.
func (r *Resolver) answer(host string, asked [len(families)]*question) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var last known
	if k := r.names[host]; k != nil {
		last = *k
	}
	var addrs, before []netip.Addr
	answered := false
	why := noAnswer(host, "no such host")
	why.IsNotFound = true
	for i, q := range asked {
		before = append(before, last[i]...)
		switch err := q.failure(host); {
		case err == nil:
			answered = true
			addrs = append(addrs, q.addrs...)
		case !err.IsNotFound:
			why = err
			addrs = append(addrs, last[i]...)
		}
	}
	if answered {
		return addrs, nil
	}
	return before, why
}

// failure is why there are no addresses, so far; nil if there are.
func (q *question) failure(host string) *net.DNSError {
	select {
	case <-q.done:
	default:
		err := noAnswer(host, "the name server has not answered")
		err.IsTimeout = true
		return err
	}
	if len(q.addrs) > 0 {
		return nil
	}
	var dns *net.DNSError
	if errors.As(q.err, &dns) {
		return dns
	}
	var none *net.AddrError // of a name that the hosts file has with the other family
	err := noAnswer(host, "no such host")
	if err.IsNotFound = q.err == nil || errors.As(q.err, &none); !err.IsNotFound {
		err.Err, err.UnwrapErr = q.err.Error(), q.err
	}
	return err
}

func noAnswer(host, why string) *net.DNSError { return &net.DNSError{Name: host, Err: why} }
