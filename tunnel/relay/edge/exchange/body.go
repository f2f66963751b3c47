package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"

	"adit/internal/lend"
	"adit/tunnel/relay/edge/backlog"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/edge/webhook"
)

// countedBody is a request's body that counts what is read. Forwarding code may close it; the
// server's own body stays open.
type countedBody struct {
	body  io.Reader
	ctx   context.Context
	w     *Writer      // of the answer; counts the bytes
	asked bool         // the visitor waits for 100 Continue; over HTTP/2 net/http does not pass that on
	word  word         // the state of that; used if asked
	http1 bool         // what follows the body is the next request
	kept  bool         // a webhook's body, which was read and counted before
	held  backlog.Held // over HTTP/2 and HTTP/3
	waits atomic.Bool  // the next piece has arrived and waits for bandwidth

	trailer http.Header // of the request; set at the end of the body
	onward  http.Header // receives the trailers that are passed on; may be nil

	mu    sync.Mutex
	begun bool
	over  bool  // closed: reads fail
	ended error // the error that ended it; io.EOF if all of it was read
}

func newCountedBody(ctx context.Context, r *http.Request, w *Writer) *countedBody {
	return &countedBody{
		word: word{own: r.ProtoMajor == 1}, kept: webhook.Kept(r),
		body: r.Body, ctx: ctx, w: w, trailer: r.Trailer,
		asked: r.ProtoAtLeast(1, 1) && httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue"), http1: r.ProtoMajor == 1,
	}
}

func (c *countedBody) touched() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun || c.over
}

// begin notes that somebody is about to read.
func (c *countedBody) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = c.begun || !c.over
}

func (c *countedBody) Read(b []byte) (int, error) {
	c.mu.Lock()
	over := c.over
	c.begun = c.begun || !over
	c.mu.Unlock()
	if over {
		return 0, http.ErrBodyReadAfterClose
	}
	return c.read(b)
}

func (c *countedBody) read(b []byte) (int, error) {
	if c.asked {
		c.word.reads()
		defer c.word.hasRead()
	}
	n, err := c.next(b)
	if err != nil {
		c.mu.Lock()
		if c.ended == nil {
			c.ended = err
		}
		c.mu.Unlock()
	}
	if errors.Is(err, io.EOF) {
		for name := range c.onward {
			c.onward[name] = c.trailer[name]
		}
	}
	return n, err
}

// next reads the body's next piece and waits until its bandwidth is available.
func (c *countedBody) next(b []byte) (int, error) {
	if c.kept {
		return c.body.Read(b)
	}
	in := c.w.meter.In()
	n, err := c.body.Read(b[:in.Piece(len(b))])
	c.waits.Store(true)
	late := in.Take(c.ctx, n)
	c.waits.Store(false)
	if err == nil {
		err = late
	}
	c.w.CountIn(n)
	return n, err
}

// shaped reports whether the body's next piece has arrived and is waiting for bandwidth.
func (c *countedBody) shaped() bool { return c != nil && c.waits.Load() }

// Close makes all later reads fail.
func (c *countedBody) Close() error {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	return nil
}

// whole reports whether all of the body was read.
func (c *countedBody) whole() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Is(c.ended, io.EOF)
}

// torn reports whether the body ended early or was malformed.
func (c *countedBody) torn() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended != nil && !errors.Is(c.ended, io.EOF)
}

// gone reports whether the visitor broke the body off.
func (c *countedBody) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var tooLarge *http.MaxBytesError
	return c.ended != nil && !errors.Is(c.ended, io.EOF) && !errors.As(c.ended, &tooLarge)
}

// left reports whether more of the body may arrive. It does not if the visitor is still
// waiting for 100 Continue.
func (c *countedBody) left() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended == nil && (c.begun || !c.asked)
}

// drain reads and discards what still arrives.
func (c *countedBody) drain() {
	var mem lend.Buffer
	defer mem.Return()
	for total := 0; total < visitor.LingerBytes; {
		n, err := c.read(mem.Lend())
		if err != nil {
			return
		}
		total += n
		mem.Done(n)
	}
}
