package visitor

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"time"
)

// A visitor that is still sending is listened to for a while after its answer:
// one that is cut off at once may lose the answer with the connection (RFC 9112,
// section 9.6).
const (
	LingerTime  = 5 * time.Second
	LingerBytes = 64 << 20
)

// notTLS is said of HTTP without TLS where TLS is spoken.
const notTLS = "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
	"This port speaks TLS: ask again with an address that begins with https://.\n"

// plainHead is how long the head of a request without TLS may be to be read, and plainLines
// of how many lines.
const (
	plainHead  = 16 << 10
	plainLines = 256
)

// fewLines ends behind so many lines, or a few more.
type fewLines struct {
	io.Reader
	left int
}

func (f *fewLines) Read(b []byte) (int, error) {
	if f.left < 0 {
		return 0, io.EOF
	}
	n, err := f.Reader.Read(b)
	f.left -= bytes.Count(b[:n], []byte{'\n'})
	return n, err
}

// ExpectTLS has what comes be kept for RefusePlain if it is no TLS.
func (v *Conn) ExpectTLS() { v.expecting = true }

// keep keeps what came.
func (v *Conn) keep(b []byte) {
	const handshake = 22 // RFC 8446, section 5.1
	if len(v.plain) == 0 && len(b) > 0 && b[0] == handshake {
		v.expecting = false
		return
	}
	v.plain = append(v.plain, b...)
}

// RefusePlain tells a visitor who speaks HTTP without TLS to speak it with TLS, and
// listens until it has the answer, which net/http would not: a connection that is
// closed with something unread takes its answer with it. better returns the URL that the
// request should have asked for, to which the visitor is sent; empty: there is none.
func (v *Conn) RefusePlain(better func(*http.Request) string) {
	defer v.Close()
	_ = v.SetDeadline(time.Now().Add(LingerTime))
	v.expecting = false
	v.Unread(v.plain)
	answer := "HTTP/1.1 400 Bad Request\r\n"
	if r, err := http.ReadRequest(bufio.NewReader(&fewLines{io.LimitReader(v, plainHead), plainLines})); err == nil {
		if to := better(r); to != "" { // as at the port for http: browsers must not keep it for ever
			answer = "HTTP/1.1 308 Permanent Redirect\r\nLocation: " + to + "\r\nCache-Control: no-store\r\n"
		}
	}
	_ = v.SetDeadline(time.Now().Add(LingerTime))
	if _, err := io.WriteString(v, answer+notTLS); err != nil || v.CloseWrite() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, v, LingerBytes) // until it ends, or is given up
}
