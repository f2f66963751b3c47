package exchange

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"

	"adit/tunnel/relay/edge/message"
)

// interim passes on an interim answer (1xx).
func (w *Writer) interim(status int, fields http.Header) {
	h := w.Header()
	maps.Insert(h, message.EndToEnd(fields, fields["Connection"]))
	w.WriteHeader(status)
	for name := range fields {
		delete(h, name)
	}
}

// interims are the interim answers to one attempt by HTTP/2. They are passed on outside the
// transport's read loop, which reads the answers for all visitors from an origin's connection
// and must not wait for any of them.
type interims struct {
	w       *Writer
	changes *message.Changes

	passing sync.WaitGroup // counts one while the list is being passed on

	mu    sync.Mutex
	count int
	list  []func() // still to pass on; the first is in progress
	over  bool
}

// follow returns a context for a request that makes i receive its interim answers.
func (i *interims) follow(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: i.got})
}

func (i *interims) got(status int, fields textproto.MIMEHeader) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		return nil
	}
	if i.count++; i.count > maxInterim {
		return errInterim
	}
	h := http.Header(fields)
	if i.changes != nil {
		i.changes.Interim(h)
	}
	i.list = append(i.list, func() { i.w.interim(status, h) })
	if len(i.list) == 1 {
		i.passing.Go(i.pass)
	}
	return nil
}

// pass passes on what is in the list and whatever is added meanwhile.
func (i *interims) pass() {
	for {
		i.mu.Lock()
		next := i.list[0]
		i.mu.Unlock()
		next()
		i.mu.Lock()
		i.list = i.list[1:]
		left := len(i.list)
		i.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

// end accepts no more and waits until the visitor has all that arrived.
func (i *interims) end() {
	i.mu.Lock()
	i.over = true
	i.mu.Unlock()
	i.passing.Wait()
}
