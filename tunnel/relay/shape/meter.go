package shape

import (
	"sync"
	"sync/atomic"
)

// bounds are the bandwidths that an endpoint's bytes from and to visitors wait for.
type bounds struct{ in, out Buckets }

// Meter limits an endpoint's bytes and counts them. The zero value has no limits and
// counts for no account.
type Meter struct {
	bytesIn, bytesOut atomic.Int64
	account           atomic.Pointer[Account]
	bounds            atomic.Pointer[bounds] // nil: no limits
	binding           sync.Mutex             // held by Bind, so that of two concurrent calls the later one does not use outdated answers
}

// In returns what bytes from visitors wait for.
func (f *Meter) In() Buckets {
	if b := f.bounds.Load(); b != nil {
		return b.in
	}
	return nil
}

// Out returns what bytes to visitors wait for.
func (f *Meter) Out() Buckets {
	if b := f.bounds.Load(); b != nil {
		return b.out
	}
	return nil
}

// Bounded reports whether the endpoint's bandwidth is limited.
func (f *Meter) Bounded() bool { return f.bounds.Load() != nil }

// CountIn counts payload from visitors; CountOut counts payload to them.
func (f *Meter) CountIn(n int) {
	f.bytesIn.Add(int64(n))
	if a := f.account.Load(); a != nil {
		a.bytesIn.Add(int64(n))
	}
}

func (f *Meter) CountOut(n int) {
	f.bytesOut.Add(int64(n))
	if a := f.account.Load(); a != nil {
		a.bytesOut.Add(int64(n))
	}
}

// Stopped reports whether the client has used up its traffic.
func (f *Meter) Stopped() bool {
	a := f.account.Load()
	return a != nil && a.Stopped()
}

// IsOn reports whether the bytes are counted on account a.
func (f *Meter) IsOn(a *Account) bool { return f.account.Load() == a }

// Bytes returns the bytes counted so far.
func (f *Meter) Bytes() (in, out int64) { return f.bytesIn.Load(), f.bytesOut.Load() }

// Bind sets the limits and the account according to ask, which is passed the current
// account. An account's own bandwidth applies as well. Bind must be called again when ask
// would answer differently.
func (f *Meter) Bind(ask func(*Account) (account *Account, in, out *Bucket)) {
	f.binding.Lock()
	defer f.binding.Unlock()
	a, in, out := ask(f.account.Load())
	f.account.Store(a)
	var b bounds
	if in != nil {
		b.in = append(b.in, in)
	}
	if out != nil {
		b.out = append(b.out, out)
	}
	if a != nil && a.In.Rate()+a.Out.Rate() > 0 {
		b.in, b.out = append(b.in, &a.In), append(b.out, &a.Out)
	}
	if len(b.in)+len(b.out) == 0 {
		f.bounds.Store(nil)
		return
	}
	f.bounds.Store(&b)
}
