package h3

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// takeFor is how long a visitor may go on sending a body that nobody reads, and still is how
// long it may pause.
const (
	takeFor = time.Minute
	still   = time.Second
)

// mostTaken is how many bodies may be read in this way at once. Their requests have been
// answered and no longer count towards the limits of their visitors.
const mostTaken = 256

// unread is a request's body that knows how much of it is left, if its length was declared.
type unread struct {
	io.ReadCloser
	length int64 // as declared; not positive: no length, or no body

	// mu allows one reader at a time: code that forwards the body may still be reading it when
	// the request has been answered.
	mu   sync.Mutex
	left int64
	over bool // reads fail
}

// bodyOf makes r's body track what is left of it.
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

// take reads the rest of the body after the answer, as long as it keeps arriving. Otherwise
// quic-go would ask the visitor to stop sending, as RFC 9114, section 4.1, allows; Chromium
// 156 does stop, and then never shows the answer that it has. A visitor who pauses may be
// waiting for the end of the answer, and gets it. If the body does not end in time, the answer
// is aborted. taking counts the calls in progress; if there are too many, the visitor is asked
// to stop.
func (b *unread) take(w http.ResponseWriter, taking *atomic.Int64) {
	if b.length <= 0 {
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now()) // unblocks any other reader
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over = true; b.left == 0 {
		return
	}
	defer taking.Add(-1)
	if taking.Add(1) > mostTaken {
		return
	}
	_ = control.Flush() // other visitors need not wait for their answer
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
