package edge

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// A visitor that is still sending is listened to for a while after its answer:
// one that is cut off at once may lose the answer with the connection (RFC 9112,
// section 9.6).
const (
	lingerTime  = 5 * time.Second
	lingerBytes = 64 << 20
)

// drain takes what still comes of a body that nobody wants.
func (u *upload) drain(body io.Reader) {
	var buf growing
	defer buf.free()
	for total := 0; total < lingerBytes; {
		n, err := body.Read(buf.get())
		total += n
		if err != nil {
			u.whole = err == io.EOF
			return
		}
		buf.had(n)
	}
}

// settle ends what is left of the request's body once its answer is written. If
// that was not read to its end, the connection ends with the answer: whatever
// else comes on it is no request.
func (w *countedWriter) settle() {
	u := w.body
	if u == nil {
		return
	}
	u.release()
	if !u.soon() {
		control := http.NewResponseController(w.ResponseWriter)
		if w.complete() && control.Flush() == nil {
			u.linger()
		}
		if control.SetReadDeadline(time.Now()) != nil {
			return // its reading ends with the handler
		}
		<-u.done
	}
	if !u.whole {
		w.closeAfter()
	}
}

// linger waits for the end of the upload, for some time.
func (u *upload) linger() {
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	select {
	case <-u.done:
	case <-timer.C:
	}
}

// complete reports whether a visitor has all of its answer before the handler
// has returned: there is no end of chunks to come.
func (w *countedWriter) complete() bool {
	return !w.aborted && w.Header().Get("Content-Length") != ""
}

// closeAfter has the server close a connection of HTTP/1 after the answer, and
// say so if that has not begun. MaxBytesReader promises it for a body that is
// over its limit, and nothing else in net/http does.
func (w *countedWriter) closeAfter() {
	server := w.ResponseWriter
	for {
		outer, ok := server.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		server = outer.Unwrap()
	}
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(server, io.NopCloser(strings.NewReader("x")), 0)) // it is over
}
