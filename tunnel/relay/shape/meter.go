package shape

import (
	"sync"
	"sync/atomic"
)

// bounds are the bandwidths that an endpoint's bytes wait for, from visitors and
// to them.
type bounds struct{ in, out Buckets }

// Meter is what bounds an endpoint's bytes, and where they are counted. The zero
// value bounds nothing and counts for nobody else.
type Meter struct {
	bytesIn, bytesOut atomic.Int64
	account           atomic.Pointer[Account]
	bounds            atomic.Pointer[bounds] // nil: nothing bounds
	binding           sync.Mutex             // held by Bind: of two at once the later must not go by what was before
}

// In is what bytes of visitors wait for.
func (f *Meter) In() Buckets {
	if b := f.bounds.Load(); b != nil {
		return b.in
	}
	return nil
}

// Out is what bytes to visitors wait for.
func (f *Meter) Out() Buckets {
	if b := f.bounds.Load(); b != nil {
		return b.out
	}
	return nil
}

// Bounded reports whether anything bounds the endpoint's bandwidth.
func (f *Meter) Bounded() bool { return f.bounds.Load() != nil }

// CountIn and countOut count payload.
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

// IsOn reports whether the bytes are counted to a.
func (f *Meter) IsOn(a *Account) bool { return f.account.Load() == a }

// Bytes are those that were counted.
func (f *Meter) Bytes() (in, out int64) { return f.bytesIn.Load(), f.bytesOut.Load() }

// Bind sets what bounds the bytes and whose account they are on, as ask says, which is
// told the account of now. An account's own bandwidth bounds them, too. It is to be
// done when an answer of ask's changes.
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
