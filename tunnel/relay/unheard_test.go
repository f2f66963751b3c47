package relay

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/roster"
	"adit/tunnel/wire"
)

// killable is an agent that can be as if its process had been killed: it says nothing
// any more, not even that it ends.
type killable struct {
	*fakeAgent
	dead atomic.Bool
}

type killableConn struct {
	net.PacketConn
	dead *atomic.Bool
}

func (c killableConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if c.dead.Load() {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}

func connectKillable(t *testing.T, token wire.Token, instance string) *killable {
	t.Helper()
	a := &killable{}
	var err error
	a.fakeAgent, err = dialAgentBy(t, token, instance, link.DialConfig{
		Transport: link.DTLS, NoWatch: true,
		ListenPacket: func(ctx context.Context, relay netip.AddrPort) (net.PacketConn, error) {
			conn, err := new(net.ListenConfig).ListenPacket(ctx, "udp4", ":0")
			return killableConn{conn, &a.dead}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAnAgentThatCameAnewElsewhereIsServedFromThere has an agent's process be killed, and
// another take its place with another node, before the node that had the first one can
// know: visitors of that node do not wait for the dead.
func TestAnAgentThatCameAnewElsewhereIsServedFromThere(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startNodes(t, 2)
	token := c.clientEverywhere("shop")
	v := &http.Client{Transport: &http.Transport{}}
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}
	first := connectKillable(t, c.all[0].at(token), "i1")
	first.mustClaim("k", claim, startOrigin(t, text("first")))
	everywhere(t, c.all, v, "shop.relay.test", "first")
	key := roster.Agent{Client: first.welcome.ClientID, Instance: "i1"}
	here := c.all[0].roster.Newest(key)
	first.dead.Store(true)

	connect(t, c.all[1].at(token), "i1").mustClaim("k", claim, startOrigin(t, text("second")))
	eventually(t, "the other node's is known", func() bool { return c.all[0].far.Serves(key, "k") })
	if code, body := c.all[0].page(t, v, "shop.relay.test"); code != http.StatusOK || body != "second" {
		t.Errorf("got %d %q, want the second's page", code, body)
	}
	if err := here.link.Err(); err != nil {
		t.Errorf("the answer came after the first session's end: %v", err)
	}
	// It has nothing to do any more, and would be waited for much longer.
	eventually(t, "the first session ends", func() bool { return here.link.Err() != nil })
	if err := here.link.Err(); errors.Is(err, link.ErrTimeout) {
		t.Error("it ended by itself")
	}
}

// TestAnAgentThatIsHeardIsServedHere has an agent come to another node, too, without
// having told that it is here: it answers here, and is preferred here again.
func TestAnAgentThatIsHeardIsServedHere(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startNodes(t, 2)
	token := c.clientEverywhere("shop")
	v := &http.Client{Transport: &http.Transport{}}
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}
	first := connect(t, c.all[0].at(token), "i1")
	first.mustClaim("k", claim, startOrigin(t, text("first")))
	here := c.all[0].roster.Newest(roster.Agent{Client: first.welcome.ClientID, Instance: "i1"})
	second := connect(t, c.all[1].at(token), "i1")
	second.mustClaim("k", claim, startOrigin(t, text("second")))
	everywhere(t, c.all[1:], v, "shop.relay.test", "second")
	eventually(t, "the first is heard", func() bool { return here.since.Before(here.link.Stats().LastReceived) && !here.agent.Unheard.Load() })
	everywhere(t, c.all[:1], v, "shop.relay.test", "first")
	if err := here.link.Err(); err != nil {
		t.Errorf("the session has ended: %v", err)
	}
}

// TestFlowsFollowAnAgentThatCameAnew has an agent's process be killed that has an idle
// connection besides, which keeps its session: packets of a visitor that it had go to
// the process in its place at once.
func TestFlowsFollowAnAgentThatCameAnew(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "games")
	first := connectKillable(t, token, "i1")
	udp := first.mustClaim("u", wire.Claim{Type: wire.TypeUDP}, "echo")
	tcp := first.mustClaim("t", wire.Claim{Type: wire.TypeTCP}, startTCPEcho(t))
	idle, err := net.Dial("tcp", hostOf(t, tcp.PublicURL))
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	says(t, idle, "hello")
	game, err := net.Dial("udp", hostOf(t, udp.PublicURL))
	if err != nil {
		t.Fatal(err)
	}
	defer game.Close()
	says(t, game, "one")
	here := r.roster.Newest(roster.Agent{Client: first.welcome.ClientID, Instance: "i1"})
	first.dead.Store(true)

	second := connect(t, token, "i1")
	second.mustClaim("u", wire.Claim{Type: wire.TypeUDP}, "echo")
	second.mustClaim("t", wire.Claim{Type: wire.TypeTCP}, startTCPEcho(t))
	says(t, game, "two")
	if err := here.link.Err(); err != nil {
		t.Errorf("the answer came after the first session's end: %v", err)
	}
}

// TestVisitorsOfAKilledAgentAreServedByTheNext has a visitor ask while the agent's process
// is dead and nobody knows.
func TestVisitorsOfAKilledAgentAreServedByTheNext(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	for name, c := range map[string]struct {
		claim wire.Claim
		serve func(testing.TB, http.Handler) string
	}{
		"by HTTP/1.1": {wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin},
		"by HTTP/2":   {wire.Claim{Type: wire.TypeHTTP, Domain: "grpc", HTTP2: true}, startH2C},
	} {
		first := connectKillable(t, token, name)
		url := first.mustClaim("k", c.claim, c.serve(t, text("first"))).PublicURL
		if _, body := get(t, r.visitor(t), url); body != "first" {
			t.Fatalf("%s: %s", name, body)
		}
		here := r.roster.Newest(roster.Agent{Client: first.welcome.ClientID, Instance: name})
		first.dead.Store(true)
		sent := here.link.Stats().BytesSent
		page := make(chan string)
		go func() {
			_, body := get(t, r.visitor(t), url)
			page <- body
		}()
		eventually(t, "a visitor asks", func() bool { return here.link.Stats().BytesSent > sent })

		connect(t, token, name).mustClaim("k", c.claim, c.serve(t, text("second")))
		if got := <-page; got != "second" {
			t.Errorf("%s: got %q, want the second's page", name, got)
		}
		if err := here.link.Err(); err == nil || errors.Is(err, link.ErrTimeout) {
			t.Errorf("%s: the first session's end is %v, want it to be replaced", name, err)
		}
	}
}

// says sends something, and waits until it has come back.
func says(t *testing.T, conn net.Conn, what string) {
	t.Helper()
	got := make([]byte, 100)
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte(what)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(got); err != nil || string(got[:n]) != what {
		t.Fatalf("got %q, %v, want %q", got[:n], err, what)
	}
}

// mute is a session whose agent says that it is very far away, and nothing else.
type mute struct{ link.Session }

func (mute) Stats() link.Stats     { return link.Stats{RTT: time.Hour} }
func (mute) Done() <-chan struct{} { return nil }

// TestNoAgentIsAskedForLong: how far away it is, an agent can feign.
func TestNoAgentIsAskedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begin := &session{link: mute{}}, time.Now()
		if s.answers() {
			t.Error("an agent that says nothing was heard")
		}
		if took := time.Since(begin); took > replacedTime {
			t.Errorf("it was waited for for %v, want %v at most, as for a session's streams", took, replacedTime)
		}
	})
}
