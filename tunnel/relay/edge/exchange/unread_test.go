package exchange

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/backlog"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// zeros is an agent's session whose streams reach an origin that speaks HTTP/2
// and sends zeros as long as they are taken.
type zeros struct {
	link.Session
	conns conns
	sent  atomic.Int64
}

func (s *zeros) Done() <-chan struct{} { return nil }
func (s *zeros) Err() error            { return nil }

func (s *zeros) OpenStream(context.Context) (link.Stream, error) {
	near, far := net.Pipe()
	go func() {
		if _, err := wire.ReadPreface(far); err != nil {
			return
		}
		s.conns <- &answering{Conn: far, head: wire.AppendAnswer(nil, nil)}
	}()
	return piped{near}, nil
}

func (s *zeros) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for b := make([]byte, 16<<10); ; {
		n, err := w.Write(b)
		if err != nil {
			return
		}
		s.sent.Add(int64(n))
	}
}

type piped struct{ net.Conn }

func (s piped) CloseWrite() error { return s.Close() }
func (s piped) Reset()            { s.Close() }
func (s piped) Quiet() bool       { return true }

// answering is a connection with the agent's answer before what the origin writes.
type answering struct {
	net.Conn
	head []byte
}

func (c *answering) Write(b []byte) (int, error) {
	if head := c.head; head != nil {
		c.head = nil
		if _, err := c.Conn.Write(head); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(b)
}

// conns is a listener of connections that are made elsewhere.
type conns chan net.Conn

func (l conns) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (conns) Addr() net.Addr { return &net.TCPAddr{} }

func (l conns) Close() error {
	close(l)
	return nil
}

// TestAnswersByHTTP2AreNotKeptForWhoDoesNotRead has visitors request more than can be kept,
// and read only the beginning.
func TestAnswersByHTTP2AreNotKeptForWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		origin := &zeros{conns: make(conns)}
		server := &http.Server{Handler: origin, Protocols: new(http.Protocols)}
		server.Protocols.SetUnencryptedHTTP2(true)
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(origin.conns) }()
		table := routing.New(routing.Config{Asks: Asks, OriginTime: time.Hour})
		waiting := backlog.New(backlog.DefaultMemory)
		f := New(Config{Backlog: waiting, TakeOut: table.TakeOut, Log: slog.New(slog.DiscardHandler)})
		b := &routing.Backend{Key: "k", HTTP2: true, Agent: &routing.Agent{ClientID: "c", Instance: "i", Session: origin}}
		face := routing.Face{Target: claims.TargetDomain("shop.test"), Slot: claims.SlotTLS, Type: wire.TypeHTTPS, Domain: "shop.test"}
		ep, err := table.Attach(face, b)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			table.Detach(face, b)
			server.Close()
			<-served
		}()
		ended := make([]bool, backlog.OfAgent/backlog.AnswerWindow+3)
		for i := range ended {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			to := &Route{Endpoint: ep, h2: []*routing.Backend{b}, only: true, giveUp: func() { ended[i] = true; cancel() }}
			to.ctx = context.WithValue(ctx, routeKey{}, to)
			r, _ := http.NewRequestWithContext(to.ctx, http.MethodGet, "http://shop.test/", nil)
			resp, err := roundTripper{f}.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.ReadFull(resp.Body, make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // so that one waits longer than another
		}
		synctest.Wait()
		if n, most := origin.sent.Load(), int64(len(ended)*(backlog.AnswerWindow+128<<10)); n < most/4 || n > most {
			t.Errorf("visitors who read nothing had %d bytes sent, want up to %d", n, most)
		}
		waiting.Relieve(monotime.Now())
		if n := waiting.GivenUp(); n != 0 {
			t.Errorf("%d answers were given up at once", n)
		}
		time.Sleep(backlog.SlowVisitor)
		waiting.Relieve(monotime.Now())
		for i, gone := range ended {
			if gone != (i < 3) {
				t.Errorf("of answer %d: given up is %t", i, gone)
			}
		}
		if n := waiting.GivenUp(); n != 3 {
			t.Errorf("%d answers were given up, want 3", n)
		}
	})
}
