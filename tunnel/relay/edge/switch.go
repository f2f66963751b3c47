package edge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"adit/internal/lend"
	"adit/tunnel/link"
)

var errSwitch = errors.New("the origin changes to a protocol that nobody asked for")

// wanted is what a visitor may ask an origin to change to, as a list; "" if
// nothing is left of what it asked. HTTP/2 is taken out, as a server may ignore
// any of the list (RFC 9110, section 7.8): behind a change to it, one visitor's
// connection would carry requests that the edge neither sees nor checks.
func wanted(upgrade []string) string {
	if len(upgrade) == 1 && upgrade[0] == webSocket {
		return webSocket
	}
	var list []string
	for _, value := range upgrade {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.TrimSpace(name)
			kind, _, _ := strings.Cut(strings.ToLower(name), "/")
			if name != "" && kind != "h2c" && kind != "h2" && kind != "http" {
				list = append(list, name)
			}
		}
	}
	return strings.Join(list, ", ")
}

// upgrade is what the origin is asked to change to; empty: nothing.
func (to *route) upgrade(r *http.Request) string {
	if (r.ProtoMajor == 1 && r.ProtoMinor > 0 || to.stream) && has(r.Header["Connection"], "upgrade") {
		return wanted(r.Header["Upgrade"])
	}
	return ""
}

// names reports whether protocol is one of list.
func names(list, protocol string) bool {
	for name := range strings.SplitSeq(list, ", ") {
		if protocol != "" && strings.EqualFold(name, protocol) {
			return true
		}
	}
	return false
}

// switchOver passes a change of protocol on (WebSocket), and then bytes both
// ways until both have ended. The error is for explain.
func (x *exchange) switchOver(answer *http.Response) error {
	s := x.stream
	defer s.close()
	defer x.stop()
	if x.body != nil && !(x.body.soon() && x.body.finished()) || !names(x.upgrade, answer.Header.Get("Upgrade")) {
		s.conn.Reset()
		return errSwitch
	}
	conn, rw, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		s.conn.Reset()
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(x.ctx, func() { conn.Close() })()
	h := x.w.Header()
	for name, values := range endToEnd(answer.Header, answer.Header["Connection"]) {
		if name != "Content-Length" {
			h[name] = values
		}
	}
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", answer.Header.Get("Upgrade"))
	write(rw.Writer, "HTTP/1.1 101 Switching Protocols\r\n")
	for name, values := range h {
		for _, v := range values {
			header(rw.Writer, name, v)
		}
	}
	write(rw.Writer, "\r\n")
	if err := rw.Flush(); err != nil {
		s.conn.Reset()
		if errors.Is(err, errAccept) { // nothing is answered yet
			return err
		}
		return nil
	}
	var inward sync.WaitGroup
	inward.Go(func() {
		if relayBytes(s.conn, bufferedFirst(rw.Reader, conn)) != nil || s.conn.CloseWrite() != nil {
			s.conn.Reset()
			conn.Close()
		}
	})
	if relayBytes(conn, bufferedFirst(s.br, s)) != nil || closeWrite(conn) != nil {
		s.conn.Reset()
		conn.Close()
	}
	inward.Wait()
	return nil
}

// bufferedFirst reads what a buffered reader holds, and then past it.
func bufferedFirst(b interface {
	Buffered() int
	Peek(int) ([]byte, error)
}, past io.Reader,
) io.Reader {
	held, _ := b.Peek(b.Buffered())
	if len(held) == 0 {
		return past
	}
	return io.MultiReader(strings.NewReader(string(held)), past)
}

func closeWrite(w io.Writer) error {
	if c, ok := w.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// relayBytes copies src to dst until src ends.
func relayBytes(dst io.Writer, src io.Reader) error {
	var mem lend.Buffer
	defer mem.Return()
	for {
		b, err := link.ReadDirect(src, &mem, nil)
		if len(b) > 0 {
			if _, err := dst.Write(b); err != nil {
				return err
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
