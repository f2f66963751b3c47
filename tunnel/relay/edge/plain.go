package edge

import (
	"crypto/tls"
	"errors"
	"io"
	"time"
)

// notTLS is the answer to HTTP without TLS where TLS is spoken.
const notTLS = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
	"This port speaks TLS: ask again with an address that begins with https://.\n"

// isPlainHTTP reports whether a handshake failed because what came is no TLS but
// the beginning of a request by HTTP.
func isPlainHTTP(err error) bool {
	var wrong tls.RecordHeaderError
	if !errors.As(err, &wrong) {
		return false
	}
	for i, c := range wrong.RecordHeader {
		if letter := 'A' <= c && c <= 'Z'; !letter && (i < 3 || c != ' ' && c != '/' && c != '*') {
			return false
		}
	}
	return true
}

// refusePlain tells a visitor who speaks HTTP without TLS to speak it with TLS,
// and listens until it has the answer, which net/http would not: a connection
// that is closed with something unread takes its answer with it.
func (v *visitor) refusePlain() {
	defer v.Close()
	_ = v.SetDeadline(time.Now().Add(lingerTime))
	if _, err := io.WriteString(v, notTLS); err != nil || v.CloseWrite() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, v, lingerBytes) // until it ends, or is given up
}
