package localapi

import (
	"io"
	"os"
	"time"
)

const (
	// smallBody is how much memory every body may use. At most maxLarge larger ones are read at a
	// time.
	smallBody = 16 << 10
	maxLarge  = 16
)

// bodies has an entry for each large body that is being read or processed. Without a limit, as many
// of them as there may be connections could fill the memory.
type bodies chan struct{}

// bound wraps body for one request, which must release it.
func (b bodies) bound(body io.ReadCloser) *boundBody { return &boundBody{ReadCloser: body, large: b} }

// boundBody is a body that waits for a place once it is large.
type boundBody struct {
	io.ReadCloser

	large bodies
	read  int
	holds bool // an entry of large
}

func (b *boundBody) Read(p []byte) (int, error) {
	if b.read >= smallBody && !b.holds {
		// Wait no longer than the connection has for the request.
		timer := time.NewTimer(readTimeout)
		defer timer.Stop()
		select {
		case b.large <- struct{}{}:
			b.holds = true
		case <-timer.C:
			return 0, os.ErrDeadlineExceeded
		}
	}
	if !b.holds {
		p = p[:min(len(p), smallBody-b.read)]
	}
	n, err := b.ReadCloser.Read(p)
	b.read += n
	return n, err
}

func (b *boundBody) release() {
	if b.holds {
		<-b.large
		b.holds = false
	}
}
