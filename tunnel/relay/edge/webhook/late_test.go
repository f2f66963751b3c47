package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestBodyThatIsWholeAtTheLimit completes a body just after its time is up. From then on
// net/http watches the connection, and would take the deadline for the end of the visitor in
// every request that follows.
func TestBodyThatIsWholeAtTheLimit(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			if err := r.Context().Err(); err != nil {
				t.Errorf("the next request is over as it begins: %v", err)
			}
			return
		}
		k := &Webhook{body: &keptBody{of: &Holding{Of: new(Room)}, from: block(1), most: 100}}
		defer k.Close()
		ctx, over := context.WithCancel(r.Context())
		defer over()
		err := k.take(ctx, Coming{
			Read: func(_ context.Context, body io.Reader, b []byte) (int, error) {
				n, err := body.Read(b)
				if errors.Is(err, io.EOF) {
					over()
				}
				return n, err
			},
			Control: http.NewResponseController(w), Within: time.Minute, Linger: time.Second,
			Last: func() { w.Header().Set("Connection", "close") },
		}, r.Body)
		if !errors.Is(err, errLate) {
			t.Errorf("got %v, want %v", err, errLate)
		}
		select {
		case <-r.Context().Done(): // as it is for who watches the connection
		case <-time.After(20 * time.Second):
			t.Error("the deadline was no end of the visitor")
		}
	}))
	defer server.Close()
	resp, err := server.Client().Post(server.URL, "text/plain", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp, err = server.Client().Get(server.URL); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}
