package edge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// bodyOrNone finds out, within limit, whether a request over HTTP/2 or HTTP/3 that declares no
// length has a body. Only the end of its stream tells: over HTTP/3 that follows the header,
// and over HTTP/2 it may follow, possibly later. The function waits only for methods that
// rarely have a body, since an origin does not expect a chunked body there, not even an empty
// one. With other methods a visitor may wait for the answer before sending anything.
func bodyOrNone(w http.ResponseWriter, r *http.Request, limit time.Duration) (*http.Request, error) {
	if r.ProtoMajor < 2 || r.ContentLength >= 0 || r.Header["Expect"] != nil { // the length is known, or the body waits for 100 Continue
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
	out := r.WithContext(r.Context()) // the server's own request must not change
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
