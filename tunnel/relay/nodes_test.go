package relay

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"adit/tunnel/relay/config"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/roster"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/wire"
)

// testNodes are relays on one NATS server, each on a loopback address of its own.
type testNodes struct {
	tb   testing.TB
	dir  string
	urls []string
	all  []*testRelay

	balance   time.Duration // of the nodes that are added; zero: as in earnest
	awayGrace time.Duration // as well
}

func startNodes(tb testing.TB, n int) *testNodes {
	tb.Helper()
	if n > 1 {
		ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", n))
		if err != nil {
			tb.Skipf("this system has no further loopback addresses: %v", err)
		}
		ln.Close()
	}
	c := &testNodes{tb: tb, dir: tb.TempDir(), urls: []string{natstest.Start(tb).URL()}}
	for range n {
		c.add()
	}
	c.awaitWhole(c.all...)
	return c
}

func (c *testNodes) config(i int) config.Config {
	cfg := testConfig(filepath.Join(c.dir, fmt.Sprint(i)))
	host := fmt.Sprintf("127.0.0.%d", i+1)
	cfg.PublicHost, cfg.NATS.URLs, cfg.Nodes.Listen, cfg.Nodes.Name, cfg.Nodes.Leave = host, c.urls, host+":0", fmt.Sprintf("node%d", i), "0s"
	cfg.TunnelListen, cfg.EdgeHTTPListen, cfg.EdgeHTTPSListen = host+":0", host+":0", host+":0"
	cfg.Sinks.AllowPrivate = true
	return cfg
}

func (c *testNodes) add() *testRelay {
	c.tb.Helper()
	r := startRelayWith(c.tb, Options{Config: c.config(len(c.all)), balance: c.balance, awayGrace: c.awayGrace})
	c.all = append(c.all, r)
	return r
}

// awaitWhole waits until each of the nodes has a session with every other node.
func (c *testNodes) awaitWhole(all ...*testRelay) {
	c.tb.Helper()
	for _, r := range all {
		eventually(c.tb, "nodes find each other", func() bool { return len(r.members.Others()) == len(all)-1 })
	}
}

// at returns a token of the relay that leads to another of its nodes.
func (r *testRelay) at(t wire.Token) wire.Token {
	t.Relay = r.Addrs().Tunnel
	return t
}

// page requests a name at one node.
func (r *testRelay) page(tb testing.TB, v *http.Client, name string) (int, string) {
	tb.Helper()
	req, _ := http.NewRequestWithContext(tb.Context(), http.MethodGet, "http://"+r.Addrs().HTTP+"/x", nil)
	req.Host = name
	resp, err := v.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// everywhere waits until visitors of every node get the wanted page for a name.
func everywhere(t *testing.T, nodes []*testRelay, v *http.Client, name, want string) {
	t.Helper()
	for i, r := range nodes {
		eventually(t, fmt.Sprintf("node %d gives %.40q", i, want), func() bool {
			code, got := r.page(t, v, name)
			return code == http.StatusOK && got == want
		})
	}
}

func TestAnyNodeTakesAnyVisitor(t *testing.T) {
	c := startNodes(t, 3)
	token := c.all[0].client(t, "shop")
	eventually(t, "the others know the client", func() bool {
		return !slices.ContainsFunc(c.all, func(r *testRelay) bool { _, ok := r.store.Clients.Get("shop"); return !ok })
	})
	a := connect(t, c.all[1].at(token), "i1")
	if len(a.welcome.Nodes) != 3 || len(a.welcome.Addresses) != 3 || a.welcome.NodeID != c.all[1].id {
		t.Errorf("welcome: %+v", a.welcome)
	}
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("hello")))
	v := &http.Client{Transport: &http.Transport{}}
	for i, r := range c.all {
		eventually(t, fmt.Sprintf("node %d serves", i), func() bool {
			code, body := r.page(t, v, "shop.relay.test")
			return code == 200 && body == "hello"
		})
	}
	// Each visitor is recorded where it came, and told to the agent.
	for range 3 {
		if e := a.event(wire.EventAccess); e.Key != "k" || e.Access.Path != "/x" {
			t.Errorf("event %+v", e)
		}
	}
	if err := a.call(http.MethodDelete, wire.PathClaims+"k", nil, nil); err != nil {
		t.Fatal(err)
	}
	for i, r := range c.all {
		eventually(t, fmt.Sprintf("node %d no longer serves", i), func() bool {
			code, _ := r.page(t, v, "shop.relay.test")
			return code == 404
		})
	}
}

// sessionsElsewhere returns how many sessions with a tunnel agents have with other nodes.
func (r *testRelay) sessionsElsewhere() (n int) {
	r.far.Each(func(_ roster.Agent, tunnels iter.Seq2[string, routing.Face]) {
		for range tunnels {
			n++
			break
		}
	})
	return n
}

// TestEventsThatAnAgentDoesNotWantStayWhereTheyAre sends visitors to a node other than the
// agent's, which stops passing their events on once it knows that they are not wanted.
func TestEventsThatAnAgentDoesNotWantStayWhereTheyAre(t *testing.T) {
	c := startNodes(t, 2)
	c.awaitWhole(c.all...)
	token := c.clientEverywhere("shop")
	a := connect(t, c.all[0].at(token), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("hello")))
	a.event(wire.EventPing) // its own events have begun
	muted := func() (n int) {
		for _, ep := range c.all[1].edge.Endpoints() {
			for _, b := range ep.Backends() {
				if s, ok := b.Agent.Session.(*nodes.Session); ok && s.Mute() {
					n++
				}
			}
		}
		return n
	}
	v := &http.Client{Transport: &http.Transport{}}
	visit := func() bool {
		code, _ := c.all[1].page(t, v, "shop.relay.test")
		return code == 200
	}
	eventually(t, "the other node serves", visit)
	if a.event(wire.EventAccess); muted() != 0 {
		t.Error("an agent that wants events is told of none")
	}
	for _, s := range c.all[0].roster.All() {
		s.unobserved.Store(true)
	}
	eventually(t, "the other node tells no more", func() bool { return visit() && muted() == 1 })
	before := searched(c.all[1].Relay, func(*wire.Access) bool { return true }, 1000)
	eventually(t, "visitors are recorded all the same", func() bool {
		return visit() && len(searched(c.all[1].Relay, func(*wire.Access) bool { return true }, 1000)) > len(before)
	})
}

func TestNodesAreListed(t *testing.T) {
	c := startNodes(t, 2)
	eventually(t, "the first node lists both", func() bool {
		list := c.all[0].operator().NodeList()
		return len(list) == 2 && list[0].Self && !list[1].Self && list[1].Reachable && list[0].Name == "node0" && list[1].Name == "node1"
	})
	if err := c.all[1].stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node that has ended is gone", func() bool { return len(c.all[0].operator().NodeList()) == 1 })
	alone := startRelay(t, testConfig(t.TempDir()))
	if list := alone.operator().NodeList(); len(list) != 1 || !list[0].Self || list[0].ID != alone.id || list[0].NodeAddress != "" {
		t.Errorf("alone: %+v", list)
	}
}

// clientEverywhere adds a client and waits until all nodes know it.
func (c *testNodes) clientEverywhere(name string) wire.Token {
	c.tb.Helper()
	token := c.all[0].client(c.tb, name)
	for _, r := range c.all {
		eventually(c.tb, "every node knows the client", func() bool { _, ok := r.store.Clients.Get(name); return ok })
	}
	return token
}

// TestPortsOfAnotherNodesAgent sends tcp and udp visitors to the node that the agent is
// not connected to, including packets larger than a datagram of the agent's session.
func TestPortsOfAnotherNodesAgent(t *testing.T) {
	c := startNodes(t, 2)
	a := connect(t, c.all[1].at(c.clientEverywhere("shop")), "i1")
	tcp := a.mustClaim("tcp", wire.Claim{Type: wire.TypeTCP}, startTCPEcho(t))
	udp := a.mustClaim("udp", wire.Claim{Type: wire.TypeUDP}, "echo")
	host := c.config(0).PublicHost
	eventually(t, "the other node serves both", func() bool { return len(c.all[0].edge.Endpoints()) == 2 })
	stream, err := net.Dial("tcp", net.JoinHostPort(host, fmt.Sprint(tcp.RemotePort)))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	sent := bytes.Repeat([]byte("0123456789"), 100_000)
	go func() {
		_, _ = stream.Write(sent)
		_ = stream.(*net.TCPConn).CloseWrite()
	}()
	if got, err := io.ReadAll(stream); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes of %d came back: %v", len(got), len(sent), err)
	}
	packets, err := net.Dial("udp", net.JoinHostPort(host, fmt.Sprint(udp.RemotePort)))
	if err != nil {
		t.Fatal(err)
	}
	defer packets.Close()
	buf := make([]byte, 65536)
	for _, size := range []int{1, 1200, 30_000, wire.MaxUDPPayload - 20, wire.MaxUDPPayload} {
		want := bytes.Repeat([]byte{byte(size)}, size)
		eventually(t, fmt.Sprintf("%d bytes come back", size), func() bool {
			if _, err := packets.Write(want); err != nil {
				t.Fatal(err)
			}
			_ = packets.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
			n, err := packets.Read(buf)
			return err == nil && bytes.Equal(buf[:n], want)
		})
	}
	flood := a.mustClaim("flood", wire.Claim{Type: wire.TypeUDP}, "flood")
	eventually(t, "the other node serves the flood", func() bool { return len(c.all[0].edge.Endpoints()) == 3 })
	forged, err := net.Dial("udp", net.JoinHostPort(host, fmt.Sprint(flood.RemotePort)))
	if err != nil {
		t.Fatal(err)
	}
	defer forged.Close()
	if _, err := forged.Write([]byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the agent is told that the answer was withheld", func() bool { return a.withheld.Load() == 1 })
}

// TestSecondSessionServesOn connects an agent to two nodes, the first of which shuts down
// properly. Visitors of a third node notice nothing, and the end of the session leaves
// the claim as it is.
func TestSecondSessionServesOn(t *testing.T) {
	c := startNodes(t, 3)
	token := c.clientEverywhere("shop")
	first := connect(t, c.all[0].at(token), "i1")
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}
	first.mustClaim("k", claim, startOrigin(t, text("first")))
	second := connect(t, c.all[1].at(token), "i1")
	second.mustClaim("k", claim, startOrigin(t, text("second")))
	third := c.all[2]
	ep := func() *routing.Endpoint {
		list := third.edge.Endpoints()
		if len(list) != 1 {
			return nil
		}
		return list[0]
	}
	eventually(t, "the third node knows both ways to the one tunnel", func() bool {
		return ep() != nil && len(ep().Backends()) == 1 && third.sessionsElsewhere() == 2
	})
	v := &http.Client{Transport: &http.Transport{}}
	stop := make(chan struct{})
	var visiting sync.WaitGroup
	visiting.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if code, body := third.page(t, v, "shop.relay.test"); code != 200 {
				t.Errorf("a visitor got %d %s", code, body)
				return
			}
		}
	})
	if err := c.all[0].stop(); err != nil {
		t.Error(err)
	}
	eventually(t, "the second session serves", func() bool {
		_, body := third.page(t, v, "shop.relay.test")
		return body == "second"
	})
	close(stop)
	visiting.Wait()

	// Revoking ends it on every node.
	if _, err := third.Clients().Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-second.session.Done():
	case <-time.After(patience):
		t.Error("a revoked client's session on another node lives")
	}
	eventually(t, "the name is nobody's", func() bool {
		code, _ := third.page(t, v, "shop.relay.test")
		return code == 404
	})
}

// TestPolicyHoldsWhereVisitorsArrive sets a policy at one node and asks another.
func TestPolicyHoldsWhereVisitorsArrive(t *testing.T) {
	c := startNodes(t, 2)
	a := connect(t, c.all[1].at(c.clientEverywhere("shop")), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("hello")))
	v := &http.Client{Transport: &http.Transport{}}
	want := func(what string, status int) {
		t.Helper()
		for _, r := range c.all {
			eventually(t, what, func() bool { code, _ := r.page(t, v, "shop.relay.test"); return code == status })
		}
	}
	want("both serve", 200)
	if err := c.all[0].store.Policies.Set(t.Context(), claims.TargetDomain("shop.relay.test"), []byte(`{"deny":["127.0.0.0/8"]}`)); err != nil {
		t.Fatal(err)
	}
	want("both refuse", 403)
}

func startTCPEcho(tb testing.TB) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	tb.Cleanup(func() {
		ln.Close()
		serving.Wait()
	})
	return ln.Addr().String()
}

// TestNodeServesAPortOnceItIsFree occupies the port of a tunnel on another node at first.
func TestNodeServesAPortOnceItIsFree(t *testing.T) {
	c := startNodes(t, 2)
	token := c.all[0].client(t, "shop")
	a := connect(t, c.all[0].at(token), "i1")
	ports := c.all[0].tcp
	var blocker net.Listener
	var port int
	for port = ports.First + ports.kept; blocker == nil && port <= ports.Last; port++ {
		blocker, _ = net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port))
	}
	if port--; blocker == nil {
		t.Fatal("no port is free")
	}
	defer blocker.Close()
	a.mustClaim("k", wire.Claim{Type: wire.TypeTCP, RemotePort: port}, startTCPEcho(t))
	target := claims.TargetPort("tcp", port)
	eventually(t, "the other node would serve the port", func() bool {
		claim, _ := c.all[1].store.Claims.Get(target)
		return len(claim.Holders) == 1 && c.all[1].sessionsElsewhere() == 1
	})
	c.all[1].far.Review(target)
	blocker.Close()
	eventually(t, "the other node serves the port", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.2:%d", port))
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}
