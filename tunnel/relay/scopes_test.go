package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// scoped adds a client with a scope.
func (r *testRelay) scoped(tb testing.TB, name string, scope scope.Scope) wire.Token {
	tb.Helper()
	_, token, err := r.Clients().Add(tb.Context(), name, scope)
	if err != nil {
		tb.Fatal(err)
	}
	return token
}

func (r *testRelay) rescope(tb testing.TB, name string, scope scope.Scope) {
	tb.Helper()
	if _, err := r.operator().SetClient(tb.Context(), name, scope, nil); err != nil {
		tb.Fatal(err)
	}
}

func TestScopeIsHeldWhenATunnelIsClaimed(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	first := r.tcp.First
	a := connect(t, r.scoped(t, "shop", scope.Scope{
		Types: []string{"http", "tcp"}, Domains: []string{"shop", "shop-*"}, Ports: []string{strconv.Itoa(first) + "-" + strconv.Itoa(first+1)}, Tunnels: 3,
	}), "i1")
	for _, c := range []struct {
		claim       wire.Claim
		code, field string
	}{
		{wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, wire.CodeForbidden, "type"},
		{wire.Claim{Type: wire.TypeHTTP, Domain: "other"}, wire.CodeForbidden, "domain"},
		{wire.Claim{Type: wire.TypeHTTP, Domain: "shop.other.example"}, wire.CodeForbidden, "domain"},
		{wire.Claim{Type: wire.TypeTCP, RemotePort: first + 2}, wire.CodeForbidden, "remote_port"},
	} {
		_, err := a.claim("k", c.claim, "")
		if p := problem(t, err, c.code); p.Field != c.field {
			t.Errorf("%+v: field %q, want %s", c.claim, p.Field, c.field)
		}
	}
	if g := a.mustClaim("given", wire.Claim{Type: wire.TypeHTTP}, ""); g.Domain != "shop.relay.test" {
		t.Errorf("the given name is %s", g.Domain)
	}
	if g := a.mustClaim("port", wire.Claim{Type: wire.TypeTCP}, ""); g.RemotePort < first || g.RemotePort > first+1 {
		t.Errorf("the given port is %d", g.RemotePort)
	}
	a.mustClaim("third", wire.Claim{Type: wire.TypeHTTP, Domain: "shop-3"}, "")
	a.mustClaim("third", wire.Claim{Type: wire.TypeHTTP, Domain: "shop-4"}, "") // the same tunnel, changed
	_, err := a.claim("fourth", wire.Claim{Type: wire.TypeHTTP, Domain: "shop-5"}, "")
	problem(t, err, wire.CodeLimit)
}

// Browsers let a site share cookies with all names below it, and so with whoever has one
// of them.
func TestNamesUnderAnothersAreAnothers(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a, b := connect(t, r.client(t, "a"), "i1"), connect(t, r.client(t, "b"), "i2")
	a.mustClaim("shop", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	a.mustClaim("deep", wire.Claim{Type: wire.TypeHTTP, Domain: "x.y.blog.relay.test"}, "")
	a.mustClaim("own", wire.Claim{Type: wire.TypeHTTP, Domain: "api.shop.relay.test"}, "")
	for _, name := range []string{"login.shop.relay.test", "a.b.shop.relay.test", "blog", "y.blog.relay.test", "z.x.y.blog.relay.test"} {
		_, err := b.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: name}, "")
		if p := problem(t, err, wire.CodeTaken); p.Field != "domain" {
			t.Errorf("%s: field %q", name, p.Field)
		}
	}
	for _, name := range []string{"z.blog.relay.test", "workshop", "shop.shop2.relay.test"} {
		b.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: name}, "")
	}
	// What the operator has listed for a client is the operator's word.
	c := connect(t, r.scoped(t, "c", scope.Scope{Domains: []string{"*.shop.relay.test"}}), "i3")
	c.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "login.shop.relay.test"}, "")
	a.mustClaim("shop", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "") // its own, and stays so
}

// TestNamesUnderEachOtherThatComeAtOnceAreOneClients checks that claiming at the same
// moment as somebody else is no way to get a name below theirs.
func TestNamesUnderEachOtherThatComeAtOnceAreOneClients(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a, b := connect(t, r.client(t, "shop"), "i1"), connect(t, r.client(t, "other"), "i1")
	for i := range 10 {
		name := fmt.Sprintf("s%d", i)
		for _, under := range []string{"x." + name + ".relay.test", "*." + name} {
			var first, second error
			var both sync.WaitGroup
			both.Go(func() { _, first = a.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: name}, "") })
			both.Go(func() { _, second = b.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: under}, "") })
			both.Wait()
			if (first == nil) == (second == nil) {
				t.Fatalf("of %s and %s: got %v and %v, want one of them refused", name, under, first, second)
			}
			problem(t, cmp.Or(first, second), wire.CodeTaken)
			for _, agent := range []*fakeAgent{a, b} {
				if err := agent.call(http.MethodDelete, wire.PathClaims+"k", nil, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// Who has a name keeps it while another is given one under it by the operator.
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	leave, _ := r.taking.enter("login.shop.relay.test", "c")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	_, err := b.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "x.login.shop.relay.test"}, "")
	problem(t, err, wire.CodeTaken)
	leave()
	if n := len(r.taking.of); n > 0 {
		t.Errorf("%d names are noted still", n)
	}
}

func TestChangedScopeTakesTunnelsAway(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.scoped(t, "shop", scope.Scope{}), "i1")
	a.mustClaim("one", wire.Claim{Type: wire.TypeHTTP, Domain: "one"}, "")
	a.mustClaim("two", wire.Claim{Type: wire.TypeHTTP, Domain: "two"}, "")
	r.rescope(t, "shop", scope.Scope{Domains: []string{"two"}})
	if e := a.event(wire.EventClaimLost); e.Key != "one" || !strings.Contains(e.Reason, "one.relay.test") {
		t.Errorf("got %+v", e)
	}
	eventually(t, "the name is free", func() bool { _, ok := r.store.Claims.Get(claims.TargetDomain("one.relay.test")); return !ok })
	if _, ok := r.store.Claims.Get(claims.TargetDomain("two.relay.test")); !ok {
		t.Error("the other tunnel is gone too")
	}
	r.rescope(t, "shop", scope.Scope{Types: []string{"tcp"}})
	if e := a.event(wire.EventClaimLost); e.Key != "two" {
		t.Errorf("got %+v", e)
	}
}

// TestAgentsAreToldOfAChangedScope checks this because they may now get what they were
// refused, and nobody may be at their machines to ask again.
func TestAgentsAreToldOfAChangedScope(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.scoped(t, "shop", scope.Scope{Types: []string{"tcp"}}), "i1")
	_, err := a.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	problem(t, err, wire.CodeForbidden)
	r.rescope(t, "shop", scope.Scope{})
	a.event(wire.EventScope)
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
}

func TestTimeOfAClientEnds(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.scoped(t, "shop", scope.Scope{Expires: time.Now().Add(time.Hour)})
	a := connect(t, token, "i1")
	r.rescope(t, "shop", scope.Scope{Expires: time.Now().Add(-time.Minute)})
	if e := a.event(wire.EventRevoked); !strings.Contains(e.Reason, "ended on") || e.RetryAfter != expiredRetry {
		t.Errorf("got %+v", e)
	}
	select {
	case <-a.session.Done():
	case <-time.After(patience):
		t.Fatal("the session lives on")
	}
	_, err := dialAgent(t, token, "i1")
	if p := problem(t, err, wire.CodeUnauthorized); !strings.Contains(p.Message, "ended on") || p.RetryAfter != expiredRetry {
		t.Errorf("refused with %+v", p)
	}
	var b *fakeAgent
	for soon := time.Second; b == nil; soon *= 2 { // a slow machine needs longer to connect
		r.rescope(t, "shop", scope.Scope{Expires: time.Now().Add(soon)})
		if b, err = dialAgent(t, token, "i1"); err != nil && soon > patience {
			t.Fatal(err)
		}
	}
	select { // by the clock, without a change
	case <-b.session.Done():
	case <-time.After(3 * patience):
		t.Fatal("the session outlives its time")
	}
}

// TestMonthlyQuota covers everything that can happen to a client that exceeds its quota.
func TestMonthlyQuota(t *testing.T) {
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), usageFlush: 20 * time.Millisecond})
	a := connect(t, r.scoped(t, "shop", scope.Scope{Monthly: 100_000}), "i1")
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, 60_000))
	})))
	v := r.visitor(t)
	state := func() console.Usage {
		c, err := r.operator().Client("shop")
		if err != nil {
			t.Fatal(err)
		}
		return c.Usage
	}
	becomes := func(want string) {
		t.Helper()
		eventually(t, "the state is "+want, func() bool { return state().State == want })
	}
	becomes("ok")
	get(t, v, g.PublicURL)
	eventually(t, "the answer is counted, which it is after the visitor has it", func() bool { return state().BytesOut >= 60_000 })
	if u := state(); u.BytesOut != 60_000 || u.Limit != 100_000 || u.Month != store.MonthOf(time.Now()) {
		t.Errorf("usage %+v", u)
	}
	get(t, v, g.PublicURL)
	becomes("over")
	if status, _ := get(t, v, g.PublicURL); status != 200 {
		t.Errorf("warned only, and yet status %d", status)
	}
	r.rescope(t, "shop", scope.Scope{Monthly: 100_000, OverQuota: scope.OverThrottle, Throttle: 50_000})
	becomes("throttled")
	eventually(t, "the endpoint is throttled", func() bool { return r.edge.Endpoints()[0].Meter.Bounded() })
	start := time.Now()
	get(t, v, g.PublicURL)
	if took := time.Since(start); took < 700*time.Millisecond {
		t.Errorf("60 kB at 50 kB/s took %v", took)
	}
	r.rescope(t, "shop", scope.Scope{Monthly: 100_000, OverQuota: scope.OverStop})
	eventually(t, "visitors are refused", func() bool { status, _ := get(t, v, g.PublicURL); return status == 503 })
	recorded(t, r.Relay, "over the quota", func(e wire.Access) bool { return e.Refused == "quota" })
	if e, err := r.operator().Explain(console.Question{Target: "shop", Address: "127.0.0.1"}); err != nil || e.Allowed || e.Rule != "quota" {
		t.Errorf("explained as %+v, %v", e, err)
	}
	r.rescope(t, "shop", scope.Scope{Monthly: 10_000_000, OverQuota: scope.OverStop})
	eventually(t, "visitors are let in again", func() bool { status, _ := get(t, v, g.PublicURL); return status == 200 })
}

// TestStoppedClientLosesWhatIsOpen has a connection open while the quota ends.
func TestStoppedClientLosesWhatIsOpen(t *testing.T) {
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), usageFlush: 20 * time.Millisecond})
	_, address := echoSite(t, r)
	r.rescope(t, "echo", scope.Scope{Monthly: 50_000, OverQuota: scope.OverStop})
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	for { // until it is cut
		if _, err = c.Write(make([]byte, 4000)); err == nil {
			_, err = io.ReadFull(c, make([]byte, 4000))
		}
		if err != nil {
			break
		}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the connection lives on")
	}
}

// records is a DNS for tests.
type records struct {
	mu   sync.Mutex
	txt  map[string][]string
	asks []string
}

func (r *records) lookup(_ context.Context, name string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks = append(r.asks, name)
	if list, ok := r.txt[name]; ok {
		return list, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func (r *records) set(name string, values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.txt == nil {
		r.txt = map[string][]string{}
	}
	r.txt[name] = values
}

func TestOwnDomainsAreProvedByARecord(t *testing.T) {
	dns := &records{}
	cfg := testConfig(t.TempDir())
	cfg.AnyDomain = true
	r := startRelayWith(t, Options{Config: cfg, lookupTXT: dns.lookup})
	first, second := connect(t, r.client(t, "first"), "i1"), connect(t, r.client(t, "second"), "i2")
	trusted := connect(t, r.scoped(t, "trusted", scope.Scope{Domains: []string{"*.trusted.example"}, UnprovedDomains: true}), "i3")
	record := func(client string) string {
		c, err := r.operator().Client(client)
		if err != nil || c.Proof == nil {
			t.Fatal(err)
		}
		return c.Proof.Value
	}
	if record("first") == record("second") {
		t.Fatal("two clients have one record")
	}
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "www.shop.example"}
	_, err := first.claim("k", claim, "")
	if p := problem(t, err, wire.CodeForbidden); !strings.Contains(p.Message, "_adit.www.shop.example") || !strings.Contains(p.Message, record("first")) {
		t.Errorf("refused with %q", p.Message)
	}
	dns.set("_adit.shop.example.", "something else", record("first")) // above it
	first.mustClaim("k", claim, "")
	_, err = second.claim("k", claim, "")
	problem(t, err, wire.CodeForbidden)
	dns.set("_adit.shop.example.")
	first.mustClaim("k", claim, "") // proved once
	if slices.Contains(dns.asks, "_adit.example.") {
		t.Error("a name of one label was asked for")
	}
	// The domain changes hands: who proves it now has it.
	dns.set("_adit.www.shop.example.", record("second"))
	second.mustClaim("k", claim, "")
	if e := first.event(wire.EventClaimLost); e.Key != "k" {
		t.Errorf("the first client got %+v", e)
	}
	trusted.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "a.trusted.example"}, "")
	var proofs []string
	for _, d := range r.operator().DomainList(t.Context()) {
		proofs = append(proofs, d.Domain+" "+d.Client+" "+d.Proof)
	}
	if got := strings.Join(proofs, "; "); got != "a.trusted.example trusted scope; www.shop.example second record" {
		t.Errorf("got %s", got)
	}
}

func TestOwnDomainsNeedTheOperatorsLeave(t *testing.T) {
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), lookupTXT: (&records{}).lookup})
	a := connect(t, r.client(t, "first"), "i1")
	_, err := a.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "www.shop.example"}, "")
	if p := problem(t, err, wire.CodeForbidden); strings.Contains(p.Message, "TXT") {
		t.Errorf("refused with %q", p.Message)
	}
}

func TestClientsAreKnownWhenTheyAreAway(t *testing.T) {
	cfg := testConfig(t.TempDir())
	r := startRelayWith(t, Options{Config: cfg, usageFlush: 20 * time.Millisecond})
	token := r.client(t, "shop")
	show := func(r *testRelay) console.Client {
		c, err := r.operator().Client("shop")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := show(r); c.Seen != nil {
		t.Errorf("never seen, and yet %+v", c.Seen)
	}
	a := connect(t, token, "i1")
	if err := a.call(http.MethodPost, wire.PathErrors, []wire.AgentError{{Time: time.Now(), Key: "k", Message: "origin refused"}}, nil); err != nil {
		t.Fatal(err)
	}
	for range 20_000 { // while they are stored, too
		if c := show(r); c.Seen == nil || !c.Seen.Connected || c.Seen.Transport == "" || c.Seen.Address == "" || len(c.Errors) != 1 {
			t.Fatalf("connected: %+v, errors %v", c.Seen, c.Errors)
		}
		if a, _ := r.store.Activities.Get(show(r).ClientID); len(a.Errors) > 0 {
			break
		}
	}
	a.close()
	eventually(t, "the agent is away", func() bool { c := show(r); return c.Seen != nil && !c.Seen.Connected })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	again := startRelay(t, cfg)
	if c := show(again); c.Seen == nil || c.Seen.Connected || c.Seen.Instance != "i1" || len(c.Errors) != 1 || c.Errors[0].Message != "origin refused" {
		t.Errorf("after a restart: %+v, errors %v", c.Seen, c.Errors)
	}
}
