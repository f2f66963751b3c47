// Package splice copies one direction of a connection to another connection, as directly as both
// allow, and shows what passes to those who count or inspect it. When and how the connections end
// is left to the caller.
package splice

import (
	"errors"
	"io"
	"net"

	"adit/internal/lend"
	"adit/tunnel/link"
)

// HalfCloser is a connection whose sending direction can be closed separately: *sockio.Conn,
// *tls.Conn, link.Stream.
type HalfCloser interface {
	net.Conn
	CloseWrite() error
}

// WriteError is an error of Half that came from writing to dst.
type WriteError struct{ error }

func (e *WriteError) Unwrap() error { return e.error }

// Half copies src to dst until src ends. Each part is passed to before, if set, before it is
// written, and to after, if set, once it is written. Half returns nil if src ended with io.EOF.
func Half(dst io.Writer, src io.Reader, before, after func([]byte)) error {
	var mem lend.Buffer
	defer mem.Return()
	shown := 0 // of what comes next, what before was shown already
	show := func(b []byte) {
		if len(b) > shown {
			if before != nil {
				before(b[shown:])
			}
			shown = len(b)
		}
	}
	var take func([]byte) int
	if try, ok := dst.(interface{ TryWrite([]byte) int }); ok && after == nil {
		take = func(b []byte) int {
			show(b)
			n := try.TryWrite(b)
			shown -= n
			return n
		}
	}
	for {
		b, err := link.ReadDirect(src, &mem, take)
		if len(b) > 0 {
			show(b)
			shown -= len(b)
			if _, err := dst.Write(b); err != nil {
				return &WriteError{err}
			}
			if after != nil {
				after(b)
			}
		}
		mem.Done(len(b))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
