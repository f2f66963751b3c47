package mux

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

// TestCutWriteSaysWhatItWrote has a Write that waits for the peer's window when
// its stream ends: what did not go must not count as written.
func TestCutWriteSaysWhatItWrote(t *testing.T) {
	tests := []struct {
		name string
		cut  func(ours, theirs *Stream)
		want error
	}{
		{"reset by the peer", func(_, theirs *Stream) { theirs.Reset() }, errReset},
		{"reset by the peer, which had ended its direction", func(_, theirs *Stream) {
			_ = theirs.CloseWrite()
			theirs.Reset()
		}, errReset},
		{"closed by the peer", func(_, theirs *Stream) { theirs.Close() }, errReset},
		{"reset here", func(ours, _ *Stream) { ours.Reset() }, net.ErrClosed},
		{"ended here", func(ours, _ *Stream) { _ = ours.CloseWrite() }, net.ErrClosed},
		{"session closed here", func(ours, _ *Stream) { _ = ours.session.Close("test") }, net.ErrClosed},
		{"session closed by the peer", func(_, theirs *Stream) { _ = theirs.session.Close("test") }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
				a, b := net.Pipe()
				client, server := New(a, config(true)), New(b, config(false))
				defer server.Close("test")
				defer client.Close("test")
				ours, err := client.OpenStream(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				type result struct {
					n   int
					err error
				}
				results := make(chan result, 1)
				const size = 3 * initialWindow
				go func() {
					n, err := ours.Write(make([]byte, size))
					results <- result{n, err}
				}()
				theirs, err := server.AcceptStream(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(theirs, make([]byte, 1<<10)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				tt.cut(ours, theirs)
				synctest.Wait()
				got := <-results
				if got.n >= size || got.err == nil || tt.want != nil && !errors.Is(got.err, tt.want) {
					t.Errorf("Write returned %d of %d bytes and %v; want fewer and %v", got.n, size, got.err, tt.want)
				}
			})
		})
	}
}
