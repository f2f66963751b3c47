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

// countedBody is a request's body, and counts it. Whoever forwards it may close
// it, which leaves the visitor's own to the server.
type countedBody struct {
	body  io.Reader
	ctx   context.Context
	w     *Writer      // its answer, which counts it
	asked bool         // the visitor waits for 100 Continue; by HTTP/2 net/http keeps that to itself
	word  word         // on that; used if asked
	http1 bool         // what comes behind the body is the next request
	kept  bool         // it has come, and was counted
	held  backlog.Held // by HTTP/2 and HTTP/3
	waits atomic.Bool  // the next piece, for its bandwidth

	trailer http.Header // of the request; set behind the body
	onward  http.Header // gets of it what is passed on; may be nil

	mu    sync.Mutex
	begun bool
	over  bool  // closed: Read returns nothing more
	ended error // what ended it; io.EOF where all of it was read
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

// begin notes that somebody reads from now on.
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

// next reads the body's next piece when it may pass.
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

// shaped reports whether the body's next piece has come and waits for its bandwidth.
func (c *countedBody) shaped() bool { return c != nil && c.waits.Load() }

// Close has Read read no more.
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

// torn reports whether the visitor has sent something else than the rest of a body, or
// has ended in its midst.
func (c *countedBody) torn() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended != nil && !errors.Is(c.ended, io.EOF)
}

// gone reports whether the visitor has broken the body off.
func (c *countedBody) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var tooLarge *http.MaxBytesError
	return c.ended != nil && !errors.Is(c.ended, io.EOF) && !errors.As(c.ended, &tooLarge)
}

// left reports whether some of the body may come yet. A visitor that was not
// told to send does not.
func (c *countedBody) left() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended == nil && (c.begun || !c.asked)
}

// drain takes what still comes and nobody wants.
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
