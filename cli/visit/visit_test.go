package visit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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
	if got := said.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "trying again") {
		t.Errorf("it says %q, want one line on that", got)
	}
}

// silent is a daemon that leads to a service which says nothing. It tells how visits end.
func silent(t *testing.T) (at string, ended <-chan error) {
	t.Helper()
	ends := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: adit-visit\r\n\r\n")
		_, _ = buf.ReadString('\n')
		conn.Write([]byte("heard\n"))
		_, err = io.ReadAll(buf)
		ends <- err
	}))
	t.Cleanup(server.Close)
	return server.URL, ends
}

// TestAVisitorThatBreaksOffIsNotTakenForOneThatHasEnded: a service would keep a part of a
// file for all of it.
func TestAVisitorThatBreaksOffIsNotTakenForOneThatHasEnded(t *testing.T) {
	at, ended := silent(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	serving.Go(func() {
		_ = serve(ctx, stdio.New(strings.NewReader(""), io.Discard, io.Discard), &way{client: client.New(at)}, "nas/ssh", ln)
	})
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "a line\n")
	if said, err := bufio.NewReader(conn).ReadString('\n'); said != "heard\n" {
		t.Fatalf("got %q, %v", said, err)
	}
	_ = conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
	if err := <-ended; err == nil {
		t.Error("the service reads an orderly end, want an error")
	}
}

// TestAnInterruptedPipeIsNotTakenForOneThatHasEnded is about adit visit --stdio.
func TestAnInterruptedPipeIsNotTakenForOneThatHasEnded(t *testing.T) {
	at, ended := silent(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, feed := io.Pipe()
	defer feed.Close()
	said, out := io.Pipe()
	var visiting sync.WaitGroup
	defer visiting.Wait()
	visiting.Go(func() {
		if err := once(ctx, stdio.New(in, out, io.Discard), client.New(at), "nas/ssh"); err != nil {
			t.Error(err)
		}
	})
	io.WriteString(feed, "a line\n")
	if line, err := bufio.NewReader(said).ReadString('\n'); line != "heard\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the service reads an orderly end, want an error")
	}
}

// TestWhyAPipeBroke is told by adit visit --stdio: of a service that is down nothing comes.
func TestWhyAPipeBroke(t *testing.T) {
	for said, want := range map[string]string{"": "whether the local service is running", "a part\n": "the connection to nas/ssh broke"} {
		heard := make(chan struct{}) // closed when the answer, and what is behind it, has come
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: adit-visit\r\n\r\n"+said)
			<-heard
			_ = conn.(*net.TCPConn).SetLinger(0)
		}))
		hears := sync.OnceFunc(func() { close(heard) })
		in := readerFunc(func([]byte) (int, error) { // who has the answer reads this
			if said == "" {
				hears()
			}
			return 0, io.EOF
		})
		out := writerFunc(func(b []byte) (int, error) { hears(); return len(b), nil })
		err := once(t.Context(), stdio.New(in, out, io.Discard), client.New(server.URL), "nas/ssh")
		server.Close()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %q: got %v, want %q", said, err, want)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
