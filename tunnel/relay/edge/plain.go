package edge

import (
	"io"
	"time"
)

// notTLS is the answer to HTTP without TLS where TLS is spoken.
const notTLS = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
	"This port speaks TLS: ask again with an address that begins with https://.\n"

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
