package edge

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/origin/origintest"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// silent is an agent's session whose origin takes requests, and answers none until life ends.
type silent struct {
	link.Session
	life context.Context
}

func (silent) Done() <-chan struct{} { return nil }
func (silent) Err() error            { return nil }

func (s silent) OpenStream(context.Context) (link.Stream, error) {
	near, far := net.Pipe()
	context.AfterFunc(s.life, func() { near.Close() })
	go func() {
		if _, err := wire.ReadPreface(far); err != nil {
			return
		}
		_, _ = far.Write(wire.AppendAnswer(nil, nil))
		_, _ = io.Copy(io.Discard, far)
	}()
	return origintest.Stream{Conn: near}, nil
}

// TestWhoseRequestIsEndedByTheRelayIsToldWhy ends requests that the origin has not answered
// yet. Their visitors are still there and are not mistaken for visitors who have gone.
func TestWhoseRequestIsEndedByTheRelayIsToldWhy(t *testing.T) {
	type server struct {
		edge    *Edge
		backend *routing.Backend
		policy  atomic.Pointer[policy.Policy]
	}
	change := func(s *server, d policy.Document) {
		s.policy.Store(policy.New(d, nil))
		s.edge.Recheck(claims.TargetDomain("shop.test"))
	}
	for _, c := range []struct {
		name   string
		end    func(*server)
		status int
		rule   string // of the access log
		header string // that the answer must have
	}{
		{"the policy refuses the address", func(s *server) { change(s, policy.Document{Deny: []string{"192.0.2.0/24"}}) }, 403, policy.RuleDeny, ""},
		{"the policy asks for a password", func(s *server) {
			change(s, policy.Document{BasicAuth: []policy.User{{Name: "ann", Hash: "$2a$04$abcdefghijklmnopqrstuuKlmnopqrstuuKlmnopqrstuuKlmnopq"}}})
		}, 401, policy.RuleBasicAuth, "WWW-Authenticate"},
		{"the client's traffic is used up", func(s *server) { s.edge.Stop(s.backend.Agent.Account, true) }, 503, policy.RuleQuota, "Retry-After"},
		{"no byte moves", func(s *server) {
			s.edge.endStill(monotime.Now(), time.Hour)
			s.edge.endStill(monotime.Now()+time.Hour, time.Hour)
		}, 504, "", ""},
	} {
		for _, origin := range []string{"http/1.1", "http/2"} {
			t.Run(c.name+", "+origin, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					life, over := context.WithCancel(t.Context())
					s := &server{backend: &routing.Backend{
						Key: "k", HTTP2: origin == "http/2",
						Agent: &routing.Agent{ClientID: "c", Instance: "i", Session: silent{life: life}, Account: new(shape.Account)},
					}}
					var seen []wire.Access
					s.edge = New(Config{
						Policy: func(string) *policy.Policy { return s.policy.Load() },
						Record: func(_ *routing.Endpoint, _ *routing.Backend, a wire.Access) { seen = append(seen, a) },
					})
					face := routing.Face{Target: claims.TargetDomain("shop.test"), Slot: claims.SlotPlain, Type: wire.TypeHTTP, Domain: "shop.test"}
					if _, err := s.edge.Attach(face, s.backend); err != nil {
						t.Fatal(err)
					}
					conns := make(connsFrom)
					plain := &http.Server{Handler: s.edge.servers[0].Handler, ConnContext: visitor.NewContext}
					served := make(chan struct{})
					go func() { defer close(served); _ = plain.Serve(conns) }()
					near, far := net.Pipe()
					conns <- s.edge.admission.Admit(at{far, netip.MustParseAddrPort("192.0.2.1:1000")})
					go func() { _, _ = near.Write([]byte("GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n")) }()
					synctest.Wait()
					go c.end(s)
					resp, err := http.ReadResponse(bufio.NewReader(near), nil)
					if err != nil {
						t.Fatal(err)
					}
					if resp.StatusCode != c.status || c.header != "" && resp.Header.Get(c.header) == "" {
						t.Errorf("the visitor is answered %s, %v", resp.Status, resp.Header)
					}
					near.Close()
					synctest.Wait()
					if len(seen) != 1 || seen[0].Status != c.status || strings.TrimPrefix(seen[0].Refused, shadowed) != c.rule {
						t.Errorf("the access log has %+v", seen)
					}
					s.edge.Detach(face, s.backend)
					over()
					plain.Close()
					<-served
					s.edge.kill()
					s.edge.ports.Wait()
				})
			})
		}
	}
}
