package edge

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/backlog"
	"adit/tunnel/relay/edge/h3"
	"adit/tunnel/relay/edge/origin/origintest"
	"adit/tunnel/relay/edge/presence"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// takesHeads is an agent's session whose origin takes the head of a request and
// nothing more.
type takesHeads struct{ link.Session }

func (takesHeads) Done() <-chan struct{} { return nil }
func (takesHeads) Err() error            { return nil }

func (takesHeads) OpenStream(context.Context) (link.Stream, error) {
	near, far := net.Pipe()
	go func() {
		if _, err := wire.ReadPreface(far); err != nil {
			return
		}
		_, _ = far.Read(make([]byte, 4096))
		_, _ = far.Write(wire.AppendAnswer(nil, nil))
	}()
	return origintest.Stream{Conn: near}, nil
}

// connsFrom is a listener of what visitors dial.
type connsFrom chan net.Conn

func (l connsFrom) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (connsFrom) Addr() net.Addr { return &net.TCPAddr{} }
func (l connsFrom) Close() error {
	close(l)
	return nil
}

// TestUploadsByHTTP2AreNotKeptForAnOriginThatDoesNotRead has visitors, each on a separate
// connection, send more than an origin reads.
func TestUploadsByHTTP2AreNotKeptForAnOriginThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{})
		b := &routing.Backend{Key: "k", Agent: &routing.Agent{ClientID: "c", Instance: "i", Session: takesHeads{}}}
		face := routing.Face{Target: claims.TargetDomain("shop.test"), Slot: claims.SlotPlain, Type: wire.TypeHTTP, Domain: "shop.test"}
		if _, err := e.Attach(face, b); err != nil {
			t.Fatal(err)
		}
		conns := make(connsFrom)
		server := &http.Server{Handler: e.servers[0].Handler, ConnContext: visitor.NewContext, Protocols: new(http.Protocols), HTTP2: e.servers[1].HTTP2}
		server.Protocols.SetUnencryptedHTTP2(true)
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(conns) }()

		const visitors = backlog.OfAgent/requestWindow + 3
		ended := make([]chan string, visitors)
		ctx, cancel := context.WithCancel(t.Context())
		for i := range ended {
			ended[i] = make(chan string, 1)
			client := &http.Transport{Protocols: server.Protocols, DialContext: func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				conns <- e.admission.Admit(at{far, netip.MustParseAddrPort(fmt.Sprintf("192.0.2.%d:1000", i+1))})
				return near, nil
			}}
			defer client.CloseIdleConnections()
			go func() {
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop.test/", io.MultiReader(strings.NewReader(strings.Repeat("u", 4<<20))))
				resp, err := client.RoundTrip(r)
				if err != nil {
					ended[i] <- err.Error()
					return
				}
				resp.Body.Close()
				ended[i] <- resp.Status
			}()
			time.Sleep(time.Millisecond) // so that one waits longer than another
		}
		synctest.Wait()
		e.backlog.Relieve(monotime.Now())
		if n := e.GivenUp(); n != 0 {
			t.Errorf("%d uploads were given up at once", n)
		}
		time.Sleep(backlog.SlowVisitor)
		e.backlog.Relieve(monotime.Now())
		synctest.Wait()
		for i := range ended {
			select {
			case how := <-ended[i]:
				if i >= 3 || !strings.HasPrefix(how, "503 ") {
					t.Errorf("upload %d ended: %s", i, how)
				}
			default:
				if i < 3 {
					t.Errorf("upload %d goes on", i)
				}
			}
		}
		if n := e.GivenUp(); n != 3 {
			t.Errorf("%d uploads were given up, want 3", n)
		}
		cancel()
		e.Detach(face, b)
		server.Close()
		<-served
		e.kill()
		e.ports.Wait()
		synctest.Wait()
		if n := e.backlog.Len(); n != 0 {
			t.Errorf("%d uploads are still followed", n)
		}
	})
}

// TestWhatMayBeUntaken has one agent's visitors send bodies by HTTP/2 and HTTP/3.
func TestWhatMayBeUntaken(t *testing.T) {
	type body struct {
		conn, major int
		length      int64
	}
	many := func(n int, of func(i int) body) (list []body) {
		for i := range n {
			list = append(list, of(i))
		}
		return list
	}
	for name, c := range map[string]struct {
		bodies  []body
		givenUp uint64
	}{
		"a connection each":   {many(70, func(i int) body { return body{i, 2, -1} }), 6},
		"one connection":      {many(250, func(int) body { return body{0, 2, -1} }), 0},
		"small bodies":        {many(1000, func(i int) body { return body{i, 2, 60_000} }), 0},
		"more of them":        {many(1200, func(i int) body { return body{i, 2, 60_000} }), 82},
		"HTTP/3":              {many(12, func(i int) body { return body{i, 3, -1} }), 2},
		"small ones together": {many(10_000, func(i int) body { return body{i / 200, 2, 60_000} }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := &Edge{backlog: backlog.New(backlog.DefaultMemory)}
			agent := new(routing.Agent)
			var here presence.Set
			visitors := make([]visitor.Conn, len(c.bodies))
			conns := make([]h3.Conn, len(c.bodies))
			for _, b := range c.bodies {
				ctx := visitor.NewContext(t.Context(), &visitors[b.conn])
				ctx = h3.NewContext(ctx, &conns[b.conn])
				r := (&http.Request{ProtoMajor: b.major}).WithContext(ctx)
				h := new(backlog.Held)
				_, visit := here.Enter(t.Context(), nil)
				conn, window := windowOf(r)
				e.backlog.Request(h, http.NoBody, conn, window, b.length, visit)
				h.TakenBy(agent)
			}
			e.backlog.Relieve(monotime.Now() + backlog.SlowVisitor)
			if got := e.GivenUp(); got != c.givenUp {
				t.Errorf("%d were given up, want %d", got, c.givenUp)
			}
		})
	}
}
