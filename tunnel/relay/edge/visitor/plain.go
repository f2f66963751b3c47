package visitor

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"time"
)

// Limits on how long to keep reading from a visitor that is still sending after its answer. If
// the connection is closed at once, the visitor may lose the answer (RFC 9112, section 9.6).
const (
	LingerTime  = 5 * time.Second
	LingerBytes = 64 << 20
)

// notTLS is the rest of the answer to HTTP without TLS on a TLS port.
const notTLS = "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
	"This port speaks TLS: ask again with an address that begins with https://.\n"

// plainHead and plainLines limit the head of a request without TLS that is read in order to
// answer it.
const (
	plainHead  = 16 << 10
	plainLines = 256
)

// fewLines is a reader that ends after a number of lines, or a few more.
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

// ExpectTLS makes v keep what it reads for RefusePlain, if that is not TLS.
func (v *Conn) ExpectTLS() { v.expecting = true }

// keep keeps what was read.
func (v *Conn) keep(b []byte) {
	const handshake = 22 // RFC 8446, section 5.1
	if len(v.plain) == 0 && len(b) > 0 && b[0] == handshake {
		v.expecting = false
		return
	}
	v.plain = append(v.plain, b...)
}

// RefusePlain tells a visitor that speaks HTTP without TLS to use TLS, and keeps reading until
// the visitor has the answer. net/http would not: a connection that is closed with unread data
// loses its answer. better returns the URL to redirect the visitor to, or "" if there is none.
func (v *Conn) RefusePlain(better func(*http.Request) string) {
	defer v.Close()
	_ = v.SetDeadline(time.Now().Add(LingerTime))
	v.expecting = false
	v.Unread(v.plain)
	answer := "HTTP/1.1 400 Bad Request\r\n"
	if r, err := http.ReadRequest(bufio.NewReader(&fewLines{io.LimitReader(v, plainHead), plainLines})); err == nil {
		if to := better(r); to != "" { // browsers must not cache it for ever, as on the http port
			answer = "HTTP/1.1 308 Permanent Redirect\r\nLocation: " + to + "\r\nCache-Control: no-store\r\n"
		}
	}
	_ = v.SetDeadline(time.Now().Add(LingerTime))
	if _, err := io.WriteString(v, answer+notTLS); err != nil || v.CloseWrite() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, v, LingerBytes) // until the visitor closes, or is given up
}
