package edge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// bodyOrNone finds out within limit whether a request by HTTP/2 or HTTP/3 that says no length
// has a body. Only the end of its stream tells, which by HTTP/3 comes behind the header,
// and by HTTP/2 may, and may come later. It is waited for where a body is seldom: an origin
// does not expect one in chunks there, not even an empty one. With another method a
// visitor may wait for the answer before it sends anything.
func bodyOrNone(w http.ResponseWriter, r *http.Request, limit time.Duration) (*http.Request, error) {
	if r.ProtoMajor < 2 || r.ContentLength >= 0 || r.Header["Expect"] != nil { // it is said, or the body waits to be asked for
		return r, nil
	}
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodConnect:
		return r, nil
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(limit))
	var first [1]byte
	_, err := io.ReadFull(r.Body, first[:])
	_ = control.SetReadDeadline(time.Time{})
	if err != nil && !errors.Is(err, io.EOF) {
		return r, fmt.Errorf("read the request's body: %w", err)
	}
	out := r.WithContext(r.Context()) // the server's own must stay as it is
	if err != nil {
		out.Body, out.ContentLength = http.NoBody, 0
		return out, nil
	}
	out.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first[:]), r.Body), r.Body}
	return out, nil
}
