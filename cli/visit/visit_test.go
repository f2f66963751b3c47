package visit

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"adit/cli/stdio"
	"adit/localapi/client"
)

// worn is a listener that has no more files for a while.
type worn struct {
	net.Listener
	fails int
	took  func()
}

func (w *worn) Accept() (net.Conn, error) {
	if w.fails > 0 {
		w.fails--
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	w.took()
	return w.Listener.Accept()
}

// TestVisitsGoOnAfterAMomentWithoutFiles: the port is there until Ctrl-C.
func TestVisitsGoOnAfterAMomentWithoutFiles(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	var said strings.Builder
	w := &worn{Listener: ln, fails: 2, took: cancel}
	err = serve(ctx, stdio.New(strings.NewReader(""), io.Discard, &said), &way{client: client.New("http://127.0.0.1:1")}, "nas/ssh", w)
	if err != nil || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("got %v, want that it goes on until it is ended", err)
	}
	if got := said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "it is tried again") {
		t.Errorf("it says %q, want one line on that", got)
	}
}
