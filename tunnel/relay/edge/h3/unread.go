package h3

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// takeFor is how long a visitor may go on to send a body that nobody reads, and still how
// long it may pause.
const (
	takeFor = time.Minute
	still   = time.Second
)

// mostTaken is how many bodies are taken at once. Their requests are answered, and count
// among their visitors' no more.
const mostTaken = 256

// unread is the body of a request, which knows what is left of it. Only a body whose
// length was said has any.
type unread struct {
	io.ReadCloser
	length int64 // as said; not positive: it was not, or there is no body

	// mu is for one reader at a time: who passes a body on may read it still when its
	// request is answered.
	mu   sync.Mutex
	left int64
	over bool // Read returns nothing more
}

// bodyOf has r's body count what is left of it.
func bodyOf(r *http.Request) *unread {
	b := &unread{ReadCloser: r.Body, length: r.ContentLength, left: r.ContentLength}
	if b.length > 0 {
		r.Body = b
	}
	return b
}

func (b *unread) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.read(p)
}

func (b *unread) read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); errors.Is(err, io.EOF) {
		b.left = 0
	}
	return n, err
}

// take takes what is left once the request is answered, as long as it comes. Else quic-go
// would have the visitor stop sending, as RFC 9114, section 4.1, has it; Chromium 156
// does so, and then waits for ever with the answer at hand. Who pauses may wait for the
// answer's end before it sends more, and gets it. To who never comes to an end the answer
// is to be a broken one. taking counts those that are taken; where they are many, the
// visitor is to stop.
func (b *unread) take(w http.ResponseWriter, taking *atomic.Int64) {
	if b.length <= 0 {
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now()) // of whoever reads still
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over = true; b.left == 0 {
		return
	}
	defer taking.Add(-1)
	if taking.Add(1) > mostTaken {
		return
	}
	_ = control.Flush() // others need not wait for their answer
	piece := make([]byte, 16<<10)
	for end := time.Now().Add(takeFor); b.left > 0; {
		if time.Now().After(end) {
			panic(http.ErrAbortHandler)
		}
		_ = control.SetReadDeadline(time.Now().Add(still))
		if _, err := b.read(piece); err != nil {
			return
		}
	}
}
