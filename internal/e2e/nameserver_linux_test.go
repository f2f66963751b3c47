package e2e

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"adit/internal/require"
)

// nameServer knows one name, which has an IPv4 address. It drops questions for IPv6
// addresses, as some home routers do, and while it is quiet all others.
type nameServer struct {
	name, addr string
	quiet      atomic.Bool
	dropped    atomic.Int64 // while it was quiet
}

func (s *nameServer) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	if s.quiet.Load() {
		s.dropped.Add(1)
		return
	}
	if len(q.Question) != 1 || q.Question[0].Qtype == dns.TypeAAAA {
		return
	}
	reply := new(dns.Msg).SetReply(q)
	if strings.EqualFold(q.Question[0].Name, dns.Fqdn(s.name)) && q.Question[0].Qtype == dns.TypeA {
		header := dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}
		reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: net.ParseIP(s.addr)})
	} else {
		reply.Rcode = dns.RcodeNameError
	}
	_ = w.WriteMsg(reply) // who asks asks again
}

// serve makes s the name server of this mount namespace.
func (s *nameServer) serve(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: conn, Handler: s}
	done := make(chan error, 1)
	go func() { done <- server.ActivateAndServe() }()
	t.Cleanup(func() { conn.Close(); <-done })
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver 127.0.0.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tool(t, require.Tool(t, "mount"), "--bind", conf, "/etc/resolv.conf")
}

// TestRelayIsFoundWithoutANameServer kills a relay that is known by its name, and has it
// back while nothing answers for that name.
func TestRelayIsFoundWithoutANameServer(t *testing.T) {
	t.Parallel() // most of it is waiting
	if !unshared(t, "128m") {
		return
	}
	names := &nameServer{name: "relay.test", addr: "127.0.0.1"}
	names.serve(t)
	relay := newRelay(t, "--public_host", names.name)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	agent.awaitConnected()
	public := agent.publish("http", newOrigin(t), nil)
	visitor := relay.visitor()
	await(t, "the visitor is answered", answers(visitor, public.PublicURL))

	names.quiet.Store(true)
	relay.proc.kill()
	relay.start()
	agent.awaitConnected()
	await(t, "the visitor is answered again", answers(visitor, public.PublicURL))
	if names.dropped.Load() == 0 {
		t.Error("nobody asked the name server")
	}
	var checks struct {
		Items []struct{ Name, Status, Result string }
	}
	agent.ok(http.StatusOK, http.MethodPost, "/api/v1/diagnostics", nil, &checks)
	for _, c := range checks.Items {
		if c.Name == "relay_dns" && (c.Status != "warning" || !strings.HasSuffix(c.Result, "so adit uses the addresses it found before: 127.0.0.1")) {
			t.Errorf("adit doctor says %+v", c)
		}
	}
}
