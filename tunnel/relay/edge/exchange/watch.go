package exchange

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// watch notices until end that a visitor by HTTP/1.1 leaves whose body was not asked for:
// net/http looks for that behind the body alone, and the origin would work on for nobody
// until something is written. What comes of the body nevertheless is taken.
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
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Now()) // one that has ended is read to its end
		watching.Wait()
		x.w.CloseAfter() // what met that deadline may have been net/http, which takes the visitor for gone
	}
}
