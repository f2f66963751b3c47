package exchange

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// watch notices, until end is called, if an HTTP/1.1 visitor leaves whose body was not asked
// for. net/http only checks for that after the body, so the origin would go on working for
// nobody until something is written. Whatever arrives of the body is discarded.
func (x *exchange) watch() (end func()) {
	body := x.w.body
	if x.body == nil || !body.http1 || !x.body.declined() {
		return func() {}
	}
	var watching sync.WaitGroup
	var over atomic.Bool
	watching.Go(func() {
		defer over.Store(true)
		if body.drain(); body.gone() && !over.Load() {
			x.stream.Conn.Reset()
		}
	})
	return func() {
		if over.Swap(true) {
			return
		}
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Now()) // unblocks the drain; a body that has ended is still read to its end
		watching.Wait()
		x.w.CloseAfter() // the deadline may have hit net/http's own read, which then takes the visitor for gone
	}
}
