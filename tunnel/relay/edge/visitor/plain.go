package visitor

import (
	"io"
	"time"
)

// A visitor that is still sending is listened to for a while after its answer:
// one that is cut off at once may lose the answer with the connection (RFC 9112,
// section 9.6).
const (
	LingerTime  = 5 * time.Second
	LingerBytes = 64 << 20
)

// notTLS is the answer to HTTP without TLS where TLS is spoken.
const notTLS = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
	"This port speaks TLS: ask again with an address that begins with https://.\n"

// RefusePlain tells a visitor who speaks HTTP without TLS to speak it with TLS,
// and listens until it has the answer, which net/http would not: a connection
// that is closed with something unread takes its answer with it.
func (v *Conn) RefusePlain() {
	defer v.Close()
	_ = v.SetDeadline(time.Now().Add(LingerTime))
	if _, err := io.WriteString(v, notTLS); err != nil || v.CloseWrite() != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, v, LingerBytes) // until it ends, or is given up
}
