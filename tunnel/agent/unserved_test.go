package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"adit/internal/freeport"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/wire"
)

// ask sends a visitor's stream as the relay does, with request right behind the
// preface, and returns the agent's answer.
func (r *fakeRelay) ask(t *testing.T, key string, kind wire.StreamKind, request string) error {
	t.Helper()
	r.mu.Lock()
	number := r.numbers[key]
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := r.session().OpenStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Reset()
	b, err := wire.AppendPreface(nil, wire.Preface{Visitor: testVisitor, Edge: testEdge, Endpoint: number, Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write(append(b, request...)); err != nil {
		t.Fatal(err)
	}
	s.SetReadDeadline(time.Now().Add(patience))
	return wire.ReadAnswer(s)
}

func TestVisitorsThatTheOriginDidNotTakeAreInspected(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{OriginTimeout: patience})
	port := refusing(t)
	const head = " HTTP/1.1\r\nHost: shop.relay.test\r\nX-Forwarded-For: 198.51.100.9\r\nX-Forwarded-Proto: https\r\n"
	for _, test := range []struct {
		name    string
		spec    definition.Tunnel
		kind    wire.StreamKind
		request string
		want    inspect.Summary
	}{
		{
			"a request",
			definition.Tunnel{Type: "https"},
			wire.StreamHTTP, "GET /a?b=c" + head + "\r\n",
			inspect.Summary{Kind: inspect.KindHTTP, Method: "GET", Path: "/a?b=c", Host: "shop.relay.test", Visitor: "198.51.100.9", Status: http.StatusBadGateway},
		},
		{
			"a request with a body",
			definition.Tunnel{Type: "https"},
			wire.StreamHTTP, "POST /orders" + head + "Content-Length: 5\r\n\r\nhello",
			inspect.Summary{Kind: inspect.KindHTTP, Method: "POST", Path: "/orders", Host: "shop.relay.test", Visitor: "198.51.100.9", Status: http.StatusBadGateway},
		},
		{
			"a request that another agent may take",
			definition.Tunnel{Type: "https", Mode: "balanced", Domain: "all"},
			wire.StreamHTTP, "GET /" + head + "\r\n",
			inspect.Summary{Kind: inspect.KindHTTP, Method: "GET", Path: "/", Host: "shop.relay.test", Visitor: "198.51.100.9"},
		},
		{
			"no request at all",
			definition.Tunnel{Type: "https"},
			wire.StreamHTTP, "",
			inspect.Summary{Kind: inspect.KindHTTP, Visitor: testVisitor.String(), Status: http.StatusBadGateway},
		},
		{
			"a connection",
			definition.Tunnel{Type: "tcp"},
			wire.StreamRaw, "hello",
			inspect.Summary{Kind: inspect.KindFlow, Visitor: testVisitor.String()},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.spec.LocalPort = port
			tun := mustCreate(t, a, test.spec)
			var no *wire.OriginError
			if err := r.ask(t, tun.ID, test.kind, test.request); !errors.As(err, &no) {
				t.Fatalf("got %v, want the agent's reason", err)
			}
			var list []inspect.Summary
			eventually(t, "the visitor is listed", func() bool {
				list = a.Requests(inspect.Filter{TunnelID: tun.ID})
				return len(list) == 1 && list[0].State == "failed"
			})
			got := list[0]
			if got.Error != no.Reason || !strings.Contains(got.Error, strconv.Itoa(port)) {
				t.Errorf("got the reason %q, want the one that the relay was told: %q", got.Error, no.Reason)
			}
			short := inspect.Summary{Kind: got.Kind, Method: got.Method, Path: got.Path, Host: got.Host, Visitor: got.Visitor, Status: got.Status}
			if short != test.want {
				t.Errorf("got  %+v\nwant %+v", short, test.want)
			}
			if d, ok := a.Request(got.ID, false); !ok || test.want.Method == "POST" && d.Request.Body.Text != "hello" {
				t.Errorf("in full: got %+v", d.Request)
			}
		})
	}
}

// TestRequestThatWasNotTakenIsReplayedOnceTheServiceIsThere is what a person
// does who has forgotten to start it.
func TestRequestThatWasNotTakenIsReplayedOnceTheServiceIsThere(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{OriginTimeout: patience})
	tun := mustCreate(t, a, definition.Tunnel{Type: "https", LocalPort: refusing(t)})
	if err := r.ask(t, tun.ID, wire.StreamHTTP, "POST /hook HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"); err == nil {
		t.Fatal("the origin was there")
	}
	var list []inspect.Summary
	eventually(t, "the visitor is listed", func() bool {
		list = a.Requests(inspect.Filter{})
		return len(list) == 1
	})
	port := service(t, func(c net.Conn) {
		buf := make([]byte, 4096)
		if n, _ := c.Read(buf); strings.Contains(string(buf[:n]), "POST /hook") {
			c.Write([]byte("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"))
		}
	})
	if _, err := a.Change(t.Context(), tun.ID, definition.Patch{LocalPort: &port}); err != nil {
		t.Fatal(err)
	}
	again, err := a.Replay(t.Context(), list[0].ID, inspect.Edit{})
	if err != nil || again.Status != http.StatusNoContent {
		t.Errorf("got %d, %v; want 204", again.Status, err)
	}
}

func TestUDPVisitorWhoseServiceIsDownIsInspected(t *testing.T) {
	port := freeport.Get(t)
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{Type: "udp", LocalPort: port})
	r.mu.Lock()
	number := r.numbers[tun.ID]
	r.mu.Unlock()
	var list []inspect.Summary
	packet := uint16(0)
	eventually(t, "the flow is refused", func() bool {
		packet++
		d := wire.Flow{Endpoint: number, Number: 1, Packet: packet, Payload: []byte("anybody?")}
		if _, err := wire.SplitFlow(nil, d, r.session().MaxDatagram(), r.session().SendDatagram); err != nil {
			t.Fatal(err)
		}
		r.mu.Lock()
		told := len(r.reports) > 0 // the system said that nobody listens
		r.mu.Unlock()
		return told
	})
	if err := r.session().SendDatagram(wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowClose, Endpoint: number, Number: 1})); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the flow is listed with its reason", func() bool {
		list = a.Requests(inspect.Filter{})
		return len(list) > 0 && list[len(list)-1].State == "failed" && strings.Contains(list[len(list)-1].Error, strconv.Itoa(port))
	})
}
