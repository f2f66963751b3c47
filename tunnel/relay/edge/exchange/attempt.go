package exchange

import (
	"io"
	"net/http"
	"sync"
)

// attempt is a request's body as sent to one backend by HTTP/2. Closing it ends only this
// attempt; the body stays open for the next one.
type attempt struct {
	body io.Reader
	of   *countedBody

	mu   sync.Mutex
	over bool
}

// attempt returns r with a separate body for one attempt, and a function that stops the
// attempt from reading. After end, touched tells whether some of the body has been read.
func (to *Route) attempt(r *http.Request) (out *http.Request, end func()) {
	if to.body == nil || r.Body == nil {
		return r, func() {}
	}
	a := &attempt{body: r.Body, of: to.body}
	out = new(http.Request)
	*out = *r
	out.Body = a
	return out, func() { _ = a.Close() }
}

func (a *attempt) Read(b []byte) (int, error) {
	a.mu.Lock()
	over := a.over
	if !over {
		a.of.begin()
	}
	a.mu.Unlock()
	if over {
		return 0, http.ErrBodyReadAfterClose
	}
	return a.body.Read(b)
}

func (a *attempt) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return nil
}
