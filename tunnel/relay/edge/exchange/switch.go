package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"adit/internal/lend"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/websocket"
)

var (
	errSwitch      = errors.New("the origin changes to a protocol that nobody asked for")
	errNotSwitched = errors.New("the origin answers and does not change to the protocol that was asked for")
)

// notSwitched discards a successful answer that does not change the protocol. A visitor who
// used extended CONNECT would take that status to mean that the protocol has changed (RFC
// 8441, section 5). The error is for Config.Explain.
func (x *exchange) notSwitched() error {
	x.stop()
	x.stream.Conn.Reset()
	x.stream.Close()
	return errNotSwitched
}

// switchOver passes a change of protocol on (WebSocket), and then copies bytes both ways until
// both directions have ended. The error is for Config.Explain.
func (x *exchange) switchOver(answer *http.Response) error {
	s := x.stream
	defer s.Close()
	defer x.stop()
	if x.body != nil && !(x.body.soon() && x.body.finished()) || !message.Lists(x.to.upgrade, answer.Header.Get("Upgrade")) {
		s.Conn.Reset()
		return errSwitch
	}
	conn, rw, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		s.Conn.Reset()
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(x.ctx, func() { conn.Close() })()
	h := x.w.Header()
	for name, values := range message.EndToEnd(answer.Header, answer.Header["Connection"]) {
		if name != "Content-Length" {
			h[name] = values
		}
	}
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", answer.Header.Get("Upgrade"))
	if err := message.WriteSwitch(rw.Writer, h); err != nil {
		s.Conn.Reset()
		if errors.Is(err, websocket.ErrAccept) { // nothing has been answered yet
			return err
		}
		return nil
	}
	var inward sync.WaitGroup
	inward.Go(func() {
		if relayBytes(s.Conn, bufferedFirst(rw.Reader, conn)) != nil || s.Conn.CloseWrite() != nil {
			s.Conn.Reset()
			conn.Close()
		}
	})
	if relayBytes(conn, s.Rest()) != nil || closeWrite(conn) != nil {
		s.Conn.Reset()
		conn.Close()
	}
	inward.Wait()
	return nil
}

// bufferedFirst returns a reader of what a buffered reader holds, followed by what is
// underneath.
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
