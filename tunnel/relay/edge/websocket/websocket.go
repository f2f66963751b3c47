// Package websocket turns WebSockets that are requested by extended CONNECT into HTTP/1.1
// upgrades, which origins understand, and returns the origin's answer on the visitor's stream.
package websocket

import (
	"bufio"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"adit/internal/h2connect"
)

func init() { h2connect.Restore() }

// Name is what the protocol is asked for by.
const Name = "websocket"

// Protocol is what a visitor asks for by extended CONNECT over HTTP/2
// (RFC 8441, section 4) or HTTP/3 (RFC 9220); "" if it asks for none.
func Protocol(r *http.Request) string {
	switch {
	case r.Method != http.MethodConnect:
		return ""
	case r.ProtoMajor == 2:
		return r.Header.Get(":protocol")
	case r.ProtoMajor == 3 && r.Proto != "HTTP/3.0":
		return r.Proto
	}
	return ""
}

// Upgrade turns a WebSocket that is asked for by extended CONNECT into the
// upgrade of HTTP/1.1 that origins know. Its writer takes the origin's answer
// and the change of protocol back to the visitor's stream.
func Upgrade(w http.ResponseWriter, r *http.Request) (*Writer, *http.Request) {
	var nonce [16]byte
	rand.Read(nonce[:])
	key := base64.StdEncoding.EncodeToString(nonce[:])
	stream := r.Body
	out := r.Clone(r.Context())
	out.Method = http.MethodGet
	out.Body, out.ContentLength, out.TransferEncoding = http.NoBody, 0, nil
	out.Header.Del(":protocol")
	out.Header.Del("Content-Length")
	out.Header.Set("Connection", "Upgrade")
	out.Header.Set("Upgrade", Name)
	out.Header.Set("Sec-Websocket-Key", key)
	if out.Header.Get("Sec-Websocket-Version") == "" {
		out.Header.Set("Sec-Websocket-Version", "13")
	}
	return &Writer{ResponseWriter: w, Stream: stream, end: stream, accept: acceptKey(key)}, out
}

// acceptKey is what the key must be answered with (RFC 6455, section 4.2.2).
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Writer answers an extended CONNECT.
type Writer struct {
	http.ResponseWriter
	Stream io.Reader // what the visitor sends; whoever follows it may put a reader over it
	end    io.Closer // of stream
	accept string
}

func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack gives the stream as a connection. What is written to the buffer beside
// it is the origin's head as HTTP/1.1 has it; in its place the visitor gets 200
// with the same headers, less those of the upgrade.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn := &streamConn{w: w.ResponseWriter, control: http.NewResponseController(w.ResponseWriter), stream: w.Stream, end: w.end}
	return conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(&streamHead{writer: w})), nil
}

// ErrAccept is of an answer that is none to what was asked.
var ErrAccept = errors.New("the origin answered the WebSocket's key with another")

type streamHead struct {
	writer *Writer
	sent   bool
}

func (h *streamHead) Write(b []byte) (int, error) {
	if h.sent {
		return len(b), nil
	}
	h.sent = true
	header := h.writer.Header()
	fits := header.Get("Sec-Websocket-Accept") == h.writer.accept
	for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Accept", "Content-Length"} {
		header.Del(name)
	}
	if !fits {
		return 0, ErrAccept
	}
	h.writer.WriteHeader(http.StatusOK)
	return len(b), http.NewResponseController(h.writer.ResponseWriter).Flush()
}

// streamConn is a stream of HTTP/2 or HTTP/3 as a connection. Each write goes
// out at once: messages of a WebSocket do not wait for one another.
type streamConn struct {
	w       http.ResponseWriter
	control *http.ResponseController
	stream  io.Reader
	end     io.Closer
}

func (c *streamConn) Read(b []byte) (int, error) { return c.stream.Read(b) }

func (c *streamConn) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if err != nil {
		return n, err
	}
	return n, c.control.Flush()
}

func (c *streamConn) Close() error         { return c.end.Close() }
func (c *streamConn) LocalAddr() net.Addr  { return &net.TCPAddr{} }
func (c *streamConn) RemoteAddr() net.Addr { return &net.TCPAddr{} }

func (c *streamConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *streamConn) SetReadDeadline(t time.Time) error  { return c.control.SetReadDeadline(t) }
func (c *streamConn) SetWriteDeadline(t time.Time) error { return c.control.SetWriteDeadline(t) }
