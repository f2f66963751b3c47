package h3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowly is a body that keeps arriving in small pieces.
type slowly struct{ read *atomic.Int64 }

func (s slowly) Read(b []byte) (int, error) {
	s.read.Add(1)
	time.Sleep(still / 2)
	return copy(b, "x"), nil
}

// TestFewBodiesAreTakenAtOnce matters because each body holds a request's memory for as long as
// its visitor likes, after the request has ceased to count towards any limit.
func TestFewBodiesAreTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const visitors = 2 * mostTaken
		var q Server
		q.cfg.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		var taken atomic.Int64
		var serving sync.WaitGroup
		for range visitors {
			serving.Go(func() {
				var read atomic.Int64
				defer func() {
					if recover() != http.ErrAbortHandler != (read.Load() == 0) {
						t.Error("a body that does not end, and is taken, does not break its answer")
					}
				}()
				r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(slowly{&read}))
				r.ContentLength = 1 << 30
				defer func() {
					if read.Load() > 0 {
						taken.Add(1)
					}
				}()
				q.ServeHTTP(httptest.NewRecorder(), r)
			})
		}
		serving.Wait()
		if n := taken.Load(); n != mostTaken {
			t.Errorf("%d of %d bodies were taken at once, want %d", n, visitors, mostTaken)
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("small"))
		rest := &atomic.Int64{}
		r.Body = io.NopCloser(io.TeeReader(r.Body, counter{rest}))
		q.ServeHTTP(httptest.NewRecorder(), r)
		if rest.Load() != int64(len("small")) {
			t.Error("there is no room when all have ended")
		}
	})
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return len(b), nil
}
