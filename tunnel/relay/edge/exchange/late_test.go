package exchange

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/shape"
)

// TestBodyBehindItsAnswerLeavesTheConnectionWhole sends the rest of a body after its answer
// has been written. From then on net/http watches the connection, and takes any error on it
// for the end of the visitor in every request that follows.
func TestBodyBehindItsAnswerLeavesTheConnectionWhole(t *testing.T) {
	for name, after := range map[string]time.Duration{"in time": time.Second, "at the last moment": visitor.LingerTime, "too late": 2 * visitor.LingerTime} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var meter shape.Meter
				server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						http.NewResponseController(rw).EnableFullDuplex()
						w := NewWriter(rw, &meter, r)
						w.body = newCountedBody(r.Context(), r, w)
						w.upload = &upload{goOn: make(chan struct{}), done: make(chan struct{})}
						go func() {
							defer close(w.upload.done)
							w.upload.begin()
							w.body.drain()
						}()
						w.Header().Set("Content-Length", "2")
						io.WriteString(w, "ok")
						w.settle()
						synctest.Wait() // for who watches the connection
					} else {
						io.WriteString(rw, "next")
					}
					if err := r.Context().Err(); err != nil && (after < visitor.LingerTime || r.Method == http.MethodGet) {
						t.Errorf("%s: the request is over: %v", r.Method, err)
					}
				})}
				near, far := net.Pipe()
				l := make(conns, 1)
				l <- far
				served := make(chan struct{})
				go func() { defer close(served); _ = server.Serve(l) }()
				defer func() { near.Close(); server.Close(); <-served }()

				br := bufio.NewReader(near)
				io.WriteString(near, "POST / HTTP/1.1\r\nHost: shop.test\r\nContent-Length: 4\r\n\r\nbo")
				answer, err := http.ReadResponse(br, nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadAll(answer.Body); err != nil {
					t.Fatal(err)
				}
				time.Sleep(after)
				_, err = io.WriteString(near, "dyGET / HTTP/1.1\r\nHost: shop.test\r\n\r\n")
				if err == nil {
					_, err = http.ReadResponse(br, nil)
				}
				if late := after > visitor.LingerTime; late != (err != nil) && after != visitor.LingerTime {
					t.Errorf("the request behind the body: %v", err)
				}
			})
		})
	}
}

// TestUploadBehindItsAnswerIsWaitedForWhileItMoves checks how long each side is waited for.
func TestUploadBehindItsAnswerIsWaitedForWhileItMoves(t *testing.T) {
	for _, c := range []struct {
		name     string
		visitor  time.Duration // between the bytes that it sends
		origin   time.Duration // between the bytes that it takes
		patience time.Duration
		whole    bool
	}{
		{"both steady", time.Second / 2, 0, endlessBody, true},
		{"a slow visitor, which has its answer", 4 * time.Second, 0, visitor.LingerTime, true},
		{"a slow visitor, which may wait for the end", 4 * time.Second, 0, endlessBody, false},
		{"a visitor that is silent", time.Minute, 0, visitor.LingerTime, false},
		{"a slow origin", 0, 4 * time.Second, endlessBody, true},
		{"an origin that takes nothing", 0, time.Minute, endlessBody, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 100
				out, in := io.Pipe()
				u := &upload{done: make(chan struct{})}
				taken := writerFunc(func(b []byte) (int, error) { time.Sleep(c.origin); return len(b), nil })
				go func() {
					defer close(u.done)
					_, u.err = u.copy(taken, out, nil)
				}()
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for range size {
						time.Sleep(c.visitor)
						if _, err := in.Write([]byte("x")); err != nil {
							return
						}
					}
					in.Close()
				}()
				u.goesOn(t.Context(), c.patience)
				if u.finished() != c.whole {
					t.Errorf("whole: %t, want %t; %d bytes have gone", u.finished(), c.whole, u.moved.Load())
				}
				out.Close()
				<-u.done
				<-sent
			})
		})
	}
}

// TestUploadThatWaitsForItsBandwidthMoves shares a bandwidth among so many visitors that each
// gets its turn less than once a second, which is not the visitor's fault.
func TestUploadThatWaitsForItsBandwidthMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, others = 8 << 10, 40
		bandwidth := new(shape.Bucket)
		bandwidth.SetRate(16 << 10)
		meter := new(shape.Meter)
		meter.Bind(func(a *shape.Account) (*shape.Account, *shape.Bucket, *shape.Bucket) { return a, bandwidth, nil })
		ctx, end := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		defer busy.Wait()
		defer end()
		for range others {
			busy.Go(func() {
				for bandwidth.Take(ctx, 1<<10) == nil {
				}
			})
		}
		time.Sleep(time.Second) // their burst is over
		body := &countedBody{body: strings.NewReader(strings.Repeat("x", size)), ctx: t.Context(), w: &Writer{meter: meter}}
		u := &upload{body: body, done: make(chan struct{})}
		go func() {
			defer close(u.done)
			_, u.err = u.copy(io.Discard, body, nil)
		}()
		u.goesOn(t.Context(), endlessBody)
		if !u.finished() {
			t.Errorf("given up behind %d bytes", u.moved.Load())
		}
		<-u.done
	})
}
