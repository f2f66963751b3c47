package shape

import "sync/atomic"

// Account is what is held for one client: the bandwidth that its endpoints share,
// and the bytes of their visitors.
type Account struct {
	In, Out Bucket

	bytesIn, bytesOut atomic.Int64
	stopped           atomic.Bool
}

// Bytes are those of visitors since the edge began.
func (a *Account) Bytes() (in, out int64) { return a.bytesIn.Load(), a.bytesOut.Load() }

// Stopped reports whether the client has used up its traffic.
func (a *Account) Stopped() bool { return a.stopped.Load() }

// Count counts bytes that no endpoint has moved.
func (a *Account) Count(in, out int) {
	a.bytesIn.Add(int64(in))
	a.bytesOut.Add(int64(out))
}

// Stop has visitors be refused, or let in again, and reports whether that is a change.
func (a *Account) Stop(stop bool) (changed bool) { return a.stopped.Swap(stop) != stop }
