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

// Name is the protocol's name in a request.
const Name = "websocket"

// Protocol returns the protocol that a visitor asks for by extended CONNECT over HTTP/2 (RFC
// 8441, section 4) or HTTP/3 (RFC 9220), or "" if none.
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

// Upgrade turns a request for a WebSocket by extended CONNECT into an HTTP/1.1 upgrade, which
// origins understand. The returned Writer takes the origin's answer and the change of protocol
// back to the visitor's stream.
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

// acceptKey returns the correct answer to a key (RFC 6455, section 4.2.2).
func acceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Writer answers an extended CONNECT.
type Writer struct {
	http.ResponseWriter
	Stream io.Reader // what the visitor sends; callers may wrap it
	end    io.Closer // closes the stream
	accept string
}

func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack returns the stream as a connection. The origin's HTTP/1.1 head is expected to be
// written to the buffered writer; the visitor instead gets a 200 with the same headers,
// without those of the upgrade.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn := &streamConn{w: w.ResponseWriter, control: http.NewResponseController(w.ResponseWriter), stream: w.Stream, end: w.end}
	return conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(&streamHead{writer: w})), nil
}

// ErrAccept means that the origin's answer does not match the WebSocket's key.
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

// streamConn is a net.Conn over an HTTP/2 or HTTP/3 stream. Every write is flushed, since
// WebSocket messages must not wait for each other.
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
