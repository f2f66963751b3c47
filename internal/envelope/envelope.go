// Package envelope makes an HTTP server return errors in the envelope of adit's APIs, {"error":
// {"code", "message"}}, even if no handler runs: net/http itself refuses requests that are
// malformed, lack a Host or have too large a header, and does so in plain text. Responses of
// handlers are left alone.
package envelope

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Serve is server.Serve(ln) with every refusal in the envelope. Refusals by net/http itself also
// carry header, which should contain what all the handlers' responses have. The server's handler
// and hooks are called as before.
func Serve(server *http.Server, ln net.Listener, header http.Header) error {
	handler, state, connContext := server.Handler, server.ConnState, server.ConnContext
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Context().Value(connKey{}).(*conn).handling.Store(true)
		handler.ServeHTTP(w, r)
	})
	server.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateIdle { // all of the answer is written
			c.(*conn).handling.Store(false)
		}
		if state != nil {
			state(c, s)
		}
	}
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		ctx = context.WithValue(ctx, connKey{}, c)
		if connContext != nil {
			ctx = connContext(ctx, c)
		}
		return ctx
	}
	return server.Serve(listener{ln, header})
}

type connKey struct{} // the request's *conn

type listener struct {
	net.Listener
	header http.Header
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, header: l.header}, nil
}

// conn is a connection whose server writes a refusal of its own exactly when
// nothing is being handled, whatever the bytes look like.
type conn struct {
	net.Conn
	header   http.Header
	handling atomic.Bool // from a handler's beginning until its answer is written
}

func (c *conn) Write(b []byte) (int, error) {
	if c.handling.Load() {
		return c.Conn.Write(b)
	}
	instead, ok := refusal(b, c.header)
	if !ok {
		return c.Conn.Write(b)
	}
	if _, err := c.Conn.Write(instead); err != nil {
		return 0, err
	}
	return len(b), nil
}

// CloseWrite lets net/http end a response before it closes the connection, so that a peer that is
// still sending gets to read it.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// SetLinger is for a handler that has hijacked the connection and may have to abort it.
func (c *conn) SetLinger(sec int) error {
	if tcp, ok := c.Conn.(interface{ SetLinger(sec int) error }); ok {
		return tcp.SetLinger(sec)
	}
	return nil
}

// refusal returns what is to be sent in place of net/http's own refusal, which
// comes in one Write.
func refusal(plain []byte, header http.Header) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(plain, []byte("HTTP/1.1 "))
	if !ok || len(rest) < 3 {
		return nil, false
	}
	status, err := strconv.Atoi(string(rest[:3]))
	if err != nil || status < 400 {
		return nil, false
	}
	line, _, _ := strings.Cut(string(rest[3:]), "\r\n")
	_, reason, _ := strings.Cut(line, ": ")
	code, message := why(status, reason)
	body, err := json.Marshal(map[string]any{"error": map[string]string{"code": code, "message": message}})
	if err != nil {
		return nil, false
	}
	body = append(body, '\n')
	h := header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	answer := http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: h, Close: true,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	var sent bytes.Buffer
	if err := answer.Write(&sent); err != nil {
		return nil, false
	}
	return sent.Bytes(), true
}

// why returns the code and the sentence for a status of net/http's own, which may
// have told a reason.
func why(status int, reason string) (code, message string) {
	switch status {
	case http.StatusExpectationFailed:
		return invalid, "the header Expect may only be 100-continue; leave it out"
	case http.StatusRequestHeaderFieldsTooLarge:
		return tooLarge, "the request's headers are too large; send fewer or shorter ones"
	case http.StatusNotImplemented:
		return invalid, "the request's Transfer-Encoding is not supported; send it chunked or with a Content-Length"
	case http.StatusHTTPVersionNotSupported:
		return invalid, "this version of HTTP is not supported; use HTTP/1.1"
	}
	if reason == "" {
		reason = "its first line or a header is malformed"
	}
	return invalid, "the request cannot be read: " + reason
}

// Codes that both APIs have in their tables.
const (
	invalid  = "invalid_parameter"
	tooLarge = "payload_too_large"
)
