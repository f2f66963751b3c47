package edge

import (
	"sync"
	"sync/atomic"

	"adit/tunnel/relay/shape"
)

// Account is what an edge holds for one client: the bandwidth that its
// endpoints share, and the bytes of their visitors.
type Account struct {
	In, Out shape.Bucket

	bytesIn, bytesOut atomic.Int64
	stopped           atomic.Bool
}

// Bytes are those of visitors since the edge began.
func (a *Account) Bytes() (in, out int64) { return a.bytesIn.Load(), a.bytesOut.Load() }

// bounds are the bandwidths that an endpoint's bytes wait for, from visitors and
// to them.
type bounds struct{ in, out shape.Buckets }

// Stopped reports whether the client has used up its traffic.
func (a *Account) Stopped() bool { return a.stopped.Load() }

// Count counts bytes that no endpoint has moved.
func (a *Account) Count(in, out int) {
	a.bytesIn.Add(int64(in))
	a.bytesOut.Add(int64(out))
}

// flowing is what bounds an endpoint's bytes, and where they are counted.
type flowing struct {
	bytesIn, bytesOut atomic.Int64
	account           atomic.Pointer[Account]
	bounds            atomic.Pointer[bounds] // nil: nothing bounds
	binding           sync.Mutex             // held by bind: of two at once the later must not go by what was before
}

// in is what bytes of visitors wait for.
func (f *flowing) in() shape.Buckets {
	if b := f.bounds.Load(); b != nil {
		return b.in
	}
	return nil
}

// out is what bytes to visitors wait for.
func (f *flowing) out() shape.Buckets {
	if b := f.bounds.Load(); b != nil {
		return b.out
	}
	return nil
}

// Bounded reports whether anything bounds the endpoint's bandwidth.
func (f *flowing) Bounded() bool { return f.bounds.Load() != nil }

// countIn and countOut count payload.
func (f *flowing) countIn(n int) {
	f.bytesIn.Add(int64(n))
	if a := f.account.Load(); a != nil {
		a.bytesIn.Add(int64(n))
	}
}

func (f *flowing) countOut(n int) {
	f.bytesOut.Add(int64(n))
	if a := f.account.Load(); a != nil {
		a.bytesOut.Add(int64(n))
	}
}

// stopped reports whether the client has used up its traffic.
func (f *flowing) stopped() bool {
	a := f.account.Load()
	return a != nil && a.Stopped()
}

// bind sets what bounds an endpoint: its policy and its client's account. It is
// done when a tunnel is attached and when either changes.
func (e *Edge) bind(ep *Endpoint) {
	ep.binding.Lock()
	defer ep.binding.Unlock()
	if list := ep.Backends(); len(list) > 0 {
		ep.account.Store(list[0].Agent.Account)
	}
	var b bounds
	if p := e.cfg.Policy(ep.Target); p != nil && p.Document().Bandwidth > 0 {
		in, out := p.Bandwidth()
		b.in, b.out = append(b.in, in), append(b.out, out)
	}
	if a := ep.account.Load(); a != nil && a.In.Rate()+a.Out.Rate() > 0 {
		b.in, b.out = append(b.in, &a.In), append(b.out, &a.Out)
	}
	if len(b.in) == 0 {
		ep.bounds.Store(nil)
		return
	}
	ep.bounds.Store(&b)
}

// Bound takes an account's changed bandwidth to the endpoints of its client.
func (e *Edge) Bound(a *Account) {
	for _, ep := range e.table.withLeaving() {
		if ep.account.Load() == a {
			e.bind(ep)
		}
	}
}

// Stop refuses an account's visitors and ends those that are there, or lets
// visitors in again.
func (e *Edge) Stop(a *Account, stop bool) {
	if a.stopped.Swap(stop) == stop || !stop {
		return
	}
	for _, ep := range e.table.withLeaving() {
		if ep.account.Load() != a {
			continue
		}
		ep.visits.endEach(func(*presence) bool { return true })
		if ep.listener != nil && ep.listener.udp != nil {
			ep.listener.udp.end(func(*flow) bool { return true })
		}
	}
}
