package relay

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/wire"
)

// testNodes are relays on one NATS server, each on a loopback address of its own.
type testNodes struct {
	tb    testing.TB
	dir   string
	ports string
	urls  []string
	all   []*testRelay
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

func (c *testNodes) config(i int) Config {
	cfg := testConfig(filepath.Join(c.dir, fmt.Sprint(i)))
	host := fmt.Sprintf("127.0.0.%d", i+1)
	cfg.PublicHost, cfg.NATS.URLs, cfg.Nodes.Listen, cfg.Nodes.Name, cfg.Nodes.Leave = host, c.urls, host+":0", fmt.Sprintf("node%d", i), "0s"
	cfg.TunnelListen, cfg.EdgeHTTPListen, cfg.EdgeHTTPSListen = host+":0", host+":0", host+":0"
	return cfg
}

func (c *testNodes) add() *testRelay {
	c.tb.Helper()
	r := startRelay(c.tb, c.config(len(c.all)))
	c.all = append(c.all, r)
	return r
}

// awaitWhole waits until each of the nodes has a session with each other.
func (c *testNodes) awaitWhole(all ...*testRelay) {
	c.tb.Helper()
	for _, r := range all {
		eventually(c.tb, "nodes find each other", func() bool { return len(r.members.others()) == len(all)-1 })
	}
}

// at is a token of the relay, as one of another of its nodes.
func (r *testRelay) at(t wire.Token) wire.Token {
	t.Relay = r.Addrs().Tunnel
	return t
}

// page makes a request of a name at one node.
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

func TestNodesAreListed(t *testing.T) {
	c := startNodes(t, 2)
	eventually(t, "the first node lists both", func() bool {
		list := operator{c.all[0].Relay}.NodeList()
		return len(list) == 2 && list[0].Self && !list[1].Self && list[1].Reachable && list[0].Name == "node0" && list[1].Name == "node1"
	})
	if err := c.all[1].stop(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node that has ended is gone", func() bool { return len(operator{c.all[0].Relay}.NodeList()) == 1 })
	alone := startRelay(t, testConfig(t.TempDir()))
	if list := (operator{alone.Relay}).NodeList(); len(list) != 1 || !list[0].Self || list[0].ID != alone.id || list[0].NodeAddress != "" {
		t.Errorf("alone: %+v", list)
	}
}
