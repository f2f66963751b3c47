package exchange

import (
	"bufio"
	"cmp"
	"sync"

	"adit/internal/lend"
	"adit/tunnel/relay/edge/message"
)

// writers provides buffers for what goes to origins.
var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, lend.Small) }}

// writeHead writes the request's head to the stream.
func (x *exchange) writeHead() error {
	head := message.Head{
		Host: cmp.Or(x.backend.HostHeader, x.r.Host), Target: x.backend.Target(x.to.Target), Prefix: x.backend.Prefix(),
		Upgrade: x.to.upgrade, Way: &x.to.Way, Changes: x.backend.Requests,
	}
	w := writers.Get().(*bufio.Writer)
	w.Reset(x.stream.Conn)
	defer func() {
		w.Reset(nil)
		writers.Put(w)
	}()
	return head.Write(w, x.backend.Inward(x.r, &x.to.Way))
}
