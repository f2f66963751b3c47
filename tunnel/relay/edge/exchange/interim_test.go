package exchange

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"adit/tunnel/relay/shape"
)

// copies is a visitor's end that takes a copy of an interim answer's header where
// net/http does by HTTP/2: if the header has a length.
type copies struct {
	http.ResponseWriter
	copied, all int
}

func (c *copies) WriteHeader(status int) {
	if _, has := c.Header()["Content-Length"]; status < 200 {
		if c.all++; has {
			c.copied++
		}
	} else if has {
		c.all = -1
	}
}

// TestHeadersOfInterimAnswersAreCopied matters because the code that writes them may go on
// after the visitor has gone, while the header is changed for the next answer.
func TestHeadersOfInterimAnswersAreCopied(t *testing.T) {
	visitor := &copies{ResponseWriter: httptest.NewRecorder()}
	w := NewWriter(visitor, new(shape.Meter), httptest.NewRequest(http.MethodGet, "/", nil))
	for range 2 {
		w.interim(http.StatusEarlyHints, http.Header{"Link": {"</a.css>; rel=preload"}})
	}
	if visitor.copied != 2 || len(w.Header()) > 0 {
		t.Errorf("%d of 2 are copied, and %v is left", visitor.copied, w.Header())
	}
	if w.WriteHeader(http.StatusOK); visitor.all != 2 {
		t.Error("the answer has a length of an interim one")
	}
}
