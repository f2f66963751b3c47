package shape

import "sync/atomic"

// Account is the account of one client: the bandwidth that its endpoints share, and the
// bytes of their visitors.
type Account struct {
	In, Out Bucket

	bytesIn, bytesOut atomic.Int64
	stopped           atomic.Bool
}

// Bytes returns the visitors' bytes since the edge started.
func (a *Account) Bytes() (in, out int64) { return a.bytesIn.Load(), a.bytesOut.Load() }

// Stopped reports whether the client has used up its traffic.
func (a *Account) Stopped() bool { return a.stopped.Load() }

// Count counts bytes that did not pass through an endpoint.
func (a *Account) Count(in, out int) {
	a.bytesIn.Add(int64(in))
	a.bytesOut.Add(int64(out))
}

// Stop sets whether visitors are refused, and reports whether that is a change.
func (a *Account) Stop(stop bool) (changed bool) { return a.stopped.Swap(stop) != stop }
