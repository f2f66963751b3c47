package relay

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/wire"
)

// slowWay is a connection to a server that can be made slow or silent.
type slowWay struct {
	net.Listener
	to     string
	delay  atomic.Int64 // of what passes, in nanoseconds
	silent atomic.Bool  // what comes is swallowed
}

func newSlowWay(tb testing.TB, url string) *slowWay {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	w := &slowWay{Listener: l, to: strings.TrimPrefix(url, "nats://")}
	var wg sync.WaitGroup
	tb.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", w.to)
			if err != nil {
				a.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
				wg.Go(func() { w.pass(way[0], way[1]) })
			}
		}
	})
	return w
}

func (w *slowWay) url() string { return "nats://" + w.Addr().String() }

// pass copies bytes, each with the delay in force when it arrived.
func (w *slowWay) pass(from, to net.Conn) {
	type chunk struct {
		b  []byte
		at time.Time
	}
	queue := make(chan chunk, 4096)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer to.Close()
		for c := range queue {
			<-time.After(time.Until(c.at))
			if _, err := to.Write(c.b); err != nil {
				from.Close()
			}
		}
	})
	for {
		b := make([]byte, 32<<10)
		n, err := from.Read(b)
		if n > 0 && !w.silent.Load() {
			queue <- chunk{b[:n], time.Now().Add(time.Duration(w.delay.Load()))}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	wg.Wait()
	from.Close()
}

// startTwoWays starts two nodes, the second of which has its own connection to NATS.
func startTwoWays(t *testing.T) (*testNodes, *slowWay) {
	t.Helper()
	c := startNodes(t, 1)
	if _, err := net.ResolveTCPAddr("tcp", "127.0.0.2:0"); err != nil {
		t.Skip(err)
	}
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skipf("this system has no further loopback addresses: %v", err)
	}
	l.Close()
	way := newSlowWay(t, c.urls[0])
	c.urls = []string{way.url()}
	c.add()
	c.awaitWhole(c.all...)
	return c, way
}

// TestNodeWithoutAnAnswerFromNATSHearsOfChanges makes the server of one node fall silent.
// What others change still takes effect there, since the nodes tell each other.
func TestNodeWithoutAnAnswerFromNATSHearsOfChanges(t *testing.T) {
	t.Parallel() // most of it is waiting
	c, way := startTwoWays(t)
	token := c.clientEverywhere("shop")
	a := connect(t, c.all[1].at(token), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("hello")))
	v := &http.Client{Transport: &http.Transport{}}
	for _, r := range c.all {
		eventually(t, "both serve", func() bool { code, _ := r.page(t, v, "shop.relay.test"); return code == 200 })
	}
	way.silent.Store(true)
	if err := c.all[0].store.Policies.Set(t.Context(), claims.TargetDomain("shop.relay.test"), []byte(`{"deny":["0.0.0.0/0"]}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policy holds at the other node", func() bool { code, _ := c.all[1].page(t, v, "shop.relay.test"); return code == 403 })
	if _, ok := c.all[1].store.Clients.Get("late"); ok {
		t.Fatal("the node knows a client that there is not")
	}
	late := c.all[0].client(t, "late")
	eventually(t, "the other node knows a new client", func() bool { _, ok := c.all[1].store.Clients.Get("late"); return ok })
	b := connect(t, c.all[1].at(late), "i2")
	if _, err := c.all[0].Clients().Revoke(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if e := a.event(wire.EventRevoked); e.Reason == "" {
		t.Errorf("the revoked agent was told %+v", e)
	}
	eventually(t, "the name is given back at the other node", func() bool {
		code, _ := c.all[1].page(t, v, "shop.relay.test")
		return code == 404
	})
	if b.session.Err() != nil {
		t.Errorf("another agent was cut: %v", b.session.Err())
	}
}

// TestSlowNATSSlowsNobody makes NATS take more than two seconds to answer one node.
func TestSlowNATSSlowsNobody(t *testing.T) {
	t.Parallel() // most of it is waiting
	c, way := startTwoWays(t)
	token := c.clientEverywhere("shop")
	a := connect(t, c.all[1].at(token), "i1")
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}
	a.mustClaim("k", claim, startOrigin(t, text("hello")))
	v := &http.Client{Transport: &http.Transport{}}
	visit := func() bool { code, _ := c.all[1].page(t, v, "shop.relay.test"); return code == 200 }
	eventually(t, "it is served", visit)
	way.delay.Store(int64(1100 * time.Millisecond))
	const visits = 50
	begin := time.Now()
	for range visits {
		if !visit() {
			t.Fatal("a visitor was not answered")
		}
	}
	if each := time.Since(begin) / visits; each > 1100*time.Millisecond {
		t.Errorf("a visit took %v", each)
	}
	again := connect(t, c.all[1].at(token), "i1") // hello and claim ask nothing of the store
	again.mustClaim("k", claim, startOrigin(t, text("hello again")))
	eventually(t, "the new session serves", func() bool {
		_, body := c.all[1].page(t, v, "shop.relay.test")
		return body == "hello again"
	})
	// On a machine that stands still one may take longer than any write may, and
	// not all of them.
	renewed := c.all[1].members.Renewed()
	var all sync.WaitGroup
	for what, write := range map[string]func(try int) error{
		"a client cannot be added": func(try int) error {
			_, _, err := c.all[1].Clients().Add(t.Context(), fmt.Sprint("later", try), Scope{})
			return err
		},
		"a policy cannot be set": func(int) error {
			return c.all[1].store.Policies.Set(t.Context(), claims.TargetDomain("shop.relay.test"), []byte(`{"deny":["192.0.2.1"]}`))
		},
		"the node's lease cannot be renewed": func(int) error {
			if c.all[1].members.Renew(t.Context()); c.all[1].members.Renewed() == renewed {
				return errors.New("it was not written")
			}
			return nil
		},
	} {
		all.Go(func() {
			err := write(0)
			for try := 1; err != nil && try < 3; try++ {
				t.Logf("%s: %v", what, err)
				err = write(try)
			}
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	all.Wait()
	way.delay.Store(0) // ending is not what is tried here
	eventually(t, "the other node knows what was written", func() bool {
		_, policy := c.all[0].store.Policies.Get(claims.TargetDomain("shop.relay.test"))
		n, lease := c.all[0].store.Nodes.Get(c.all[1].id)
		return policy && lease && n.Boot != ""
	})
}

// TestTunnelGivesWayToTheNewHolderOfItsName gives a name to another client at another
// node, as can happen while this one is cut off for long.
func TestTunnelGivesWayToTheNewHolderOfItsName(t *testing.T) {
	c := startNodes(t, 2)
	first, second := c.clientEverywhere("first"), c.clientEverywhere("second")
	a := connect(t, c.all[0].at(first), "i1")
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "shop", Ephemeral: true}
	a.mustClaim("k", claim, startOrigin(t, text("first")))
	b := connect(t, c.all[1].at(second), "i2")
	v := &http.Client{Transport: &http.Transport{}}
	serves := func(r *testRelay, want string) func() bool {
		return func() bool { _, body := r.page(t, v, "shop.relay.test"); return body == want }
	}
	for _, r := range c.all {
		eventually(t, "the first has it", serves(r, "first"))
	}
	target := claims.TargetDomain("shop.relay.test")
	owner, _ := c.all[1].store.Clients.Get("second")
	h := claims.Holder{Slot: claims.SlotPlain, Instance: "i2", Key: "k", Type: wire.TypeHTTP, Mode: wire.ModeStandard}
	if _, err := c.all[1].store.Claims.Take(t.Context(), target, owner.ID, h, func(string, claims.Holder) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if e := a.event(wire.EventClaimLost); e.Key != "k" || !strings.Contains(e.Reason, "shop.relay.test") {
		t.Errorf("the first was told %+v", e)
	}
	b.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("second")))
	for _, r := range c.all {
		eventually(t, "the second has it", serves(r, "second"))
	}
	if err := a.call(http.MethodPut, wire.PathClaims+"k", claim, nil); err == nil {
		t.Error("the first was given the name of the second")
	}
}

// TestTunnelThatRunsTakesItsClaimAnew gives back the claim of a running tunnel at another
// node, to which its agent seemed to be away.
func TestTunnelThatRunsTakesItsClaimAnew(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop", Ephemeral: true}, startOrigin(t, text("hello")))
	target := claims.TargetDomain("shop.relay.test")
	before, _ := r.store.Claims.Get(target)
	if err := r.store.Claims.Release(t.Context(), target, before.ClientID, "i1", "k"); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if r.reclaim(t.Context(), now); len(r.store.Claims.List()) != 0 {
		t.Error("the claim was taken before its agent could take the tunnel down")
	}
	r.reclaim(t.Context(), now.Add(sweepTime))
	after, ok := r.store.Claims.Get(target)
	if !ok || after.ClientID != before.ClientID || len(after.Holders) != 1 || after.Holders[0] != before.Holders[0] {
		t.Errorf("the claim is %+v, was %+v", after, before)
	}
	if err := a.call(http.MethodDelete, wire.PathClaims+"k", nil, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r.reclaim(t.Context(), now.Add(time.Duration(i+2)*sweepTime))
	}
	if list := r.store.Claims.List(); len(list) != 0 {
		t.Errorf("claims are left: %+v", list)
	}
}

// TestNodeThatIsCutOffRefusesNoTokenForGood connects an agent with a token that a node
// does not know while the node hears nothing from its store, and again afterwards.
func TestNodeThatIsCutOffRefusesNoTokenForGood(t *testing.T) {
	t.Parallel() // most of it is waiting
	c, way := startTwoWays(t)
	known := c.clientEverywhere("known")
	other := c.all[1].at(known)
	other.Secret[0]++
	refused := func(code string) func() bool {
		return func() bool {
			_, err := dialAgent(t, other, "i1")
			var p *wire.Problem
			return errors.As(err, &p) && p.Code == code
		}
	}
	eventually(t, "a token that nobody knows is refused", refused(wire.CodeUnauthorized))
	way.silent.Store(true)
	eventually(t, "a node that is cut off does not say no", refused(wire.CodeUnavailable))
	if a, err := dialAgent(t, c.all[1].at(known), "i2"); err != nil {
		t.Errorf("an agent that the node knows: %v", err)
	} else {
		a.close()
	}
	way.silent.Store(false)
	eventually(t, "it says no again", refused(wire.CodeUnauthorized))
}

// TestNodesWithoutNATSTakeVisitors makes one node lose NATS, and then all of them. The
// one should get no visitors while another node hears more than it does, but all should
// when none does.
func TestNodesWithoutNATSTakeVisitors(t *testing.T) {
	t.Parallel() // most of it is waiting
	server := natstest.Start(t)
	c := &testNodes{tb: t, dir: t.TempDir(), urls: []string{server.URL()}}
	c.add()
	way := newSlowWay(t, c.urls[0])
	c.urls = []string{way.url()}
	c.add()
	c.awaitWhole(c.all...)
	say := func(i int, what string, status int, words string) {
		t.Helper()
		eventually(t, fmt.Sprintf("node %d says %s", i, what), func() bool {
			got, body, _ := c.all[i].ask(t, http.MethodGet, "/readyz", "", nil)
			return got == status && strings.Contains(body, words)
		})
	}
	way.silent.Store(true)
	say(1, "that it is cut off", http.StatusServiceUnavailable, "store_away")
	say(0, "that it is ready", http.StatusOK, `"here"`)
	way.silent.Store(false)
	say(1, "that it is back", http.StatusOK, `"here"`)
	eventually(t, "node 0 knows it by its lease, which may have ended", func() bool { return len(c.all[0].store.Nodes.List()) == 2 })
	server.Stop()
	for i := range c.all {
		say(i, "that it is ready without a store", http.StatusOK, `"away"`)
	}
	if err := c.all[1].stop(); err != nil {
		t.Error(err)
	}
	say(0, "that it does not know what another node does", http.StatusServiceUnavailable, "store_away")
	server.Start()
	say(0, "that it has its store again", http.StatusOK, `"here"`)
}
