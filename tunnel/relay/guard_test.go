package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// TestTunnelIsGuardedFromItsFirstVisitorOn checks, once a tunnel's policy is stored,
// whether visitors already reach the tunnel. If so, some came too early.
func TestTunnelIsGuardedFromItsFirstVisitorOn(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	v := r.visitor(t)
	url := "http://" + withPort("shop."+r.cfg.Domain, portOf(r.edge.HTTPAddr()), 80)
	record, stored := r.book.Record, new(atomic.Int32)
	r.book.Record = func(ctx context.Context, action, target string, detail any) {
		record(ctx, action, target, detail)
		stored.Add(1)
		if status, _ := get(t, v, url); status != http.StatusServiceUnavailable {
			t.Errorf("before its policy is known to be stored, a visitor gets status %d", status)
		}
	}
	a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	a.mustClaim("k", wire.Claim{
		Type: wire.TypeHTTP, Domain: "shop", Policy: json.RawMessage(`{"deny":["127.0.0.1"]}`), PolicyReplaces: true,
	}, startOrigin(t, text("x")))
	if status, _ := get(t, v, url); status != http.StatusForbidden || stored.Load() != 1 {
		t.Errorf("the visitor gets status %d; the policy was stored %d times", status, stored.Load())
	}
}

// TestPolicyOfAClaimAndTheOneThatIsThere covers what happens to both policies.
func TestPolicyOfAClaimAndTheOneThatIsThere(t *testing.T) {
	const brought, there = `{"deny":["192.0.2.1"]}`, `{"deny":["192.0.2.2"]}`
	guarded := func(replaces, holds bool) wire.Claim {
		return wire.Claim{Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: "shop", Policy: json.RawMessage(brought), PolicyReplaces: replaces, PolicyHolds: holds}
	}
	for name, c := range map[string]struct {
		before   string // who has set there: "own", "operator" or nobody
		leave    bool   // of the operator
		replaces bool
		holds    bool
		code     string // of the refusal; empty: none
		then     string // is in force
	}{
		"none":                            {leave: true, replaces: true, then: brought},
		"none any more":                   {leave: true, then: brought},
		"none, without leave":             {replaces: true, code: wire.CodeForbidden},
		"none any more, without leave":    {code: wire.CodeForbidden},
		"an earlier tunnel's":             {before: "own", leave: true, replaces: true, then: brought},
		"one set since":                   {before: "own", leave: true, then: there},
		"one set since, leave taken away": {before: "own", then: there},
		"the operator's":                  {before: "operator", leave: true, replaces: true, code: wire.CodeForbidden, then: there},
		"the operator's, set since":       {before: "operator", leave: true, then: there},

		"declared, and none":                        {leave: true, holds: true, then: brought},
		"declared, and one set since":               {before: "own", leave: true, holds: true, then: brought},
		"declared, one set since, leave taken away": {before: "own", holds: true, code: wire.CodeForbidden, then: there},
		"declared, and the operator's":              {before: "operator", leave: true, replaces: true, holds: true, code: wire.CodeForbidden, then: there},
		"declared, and the operator's, set since":   {before: "operator", leave: true, holds: true, then: there},
	} {
		t.Run(name, func(t *testing.T) {
			r := startRelay(t, testConfig(t.TempDir()))
			a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
			target := claims.TargetDomain("shop." + r.cfg.Domain)
			switch c.before {
			case "own":
				a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("x")))
				if err := a.call(http.MethodPut, wire.PathPolicy+"k", json.RawMessage(there), nil); err != nil {
					t.Fatal(err)
				}
			case "operator":
				(&site{testRelay: r}).setPolicy(t, "shop", there)
			}
			r.rescope(t, "shop", scope.Scope{OwnPolicies: c.leave})
			var g wire.Grant
			err := a.call(http.MethodPut, wire.PathClaims+"k", guarded(c.replaces, c.holds), &g)
			if c.code != "" {
				if p := problem(t, err, c.code); p.Field != "policy" || p.Message == "" {
					t.Errorf("refused with %+v", p)
				}
			} else if err != nil {
				t.Error(err)
			}
			if _, taken := r.store.Claims.Get(target); taken != (c.code == "" || c.before == "own") {
				t.Errorf("the name is taken: %v", taken)
			}
			p, _ := r.store.Policies.Get(target)
			if !strings.Contains(string(p.Document), strings.Trim(c.then, "{}")) || c.then == "" && len(p.Document) > 0 {
				t.Errorf("the policy is %s", p.Document)
			}
		})
	}
}

// TestADeclaredPolicyIsStoredWhenItChanges claims a tunnel again and again. Nothing is
// written if nothing is new, and no visit is rechecked. Under another name, the tunnel
// has the declared policy, whatever was set for that name before.
func TestADeclaredPolicyIsStoredWhenItChanges(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	record, stored := r.book.Record, new(atomic.Int32)
	r.book.Record = func(ctx context.Context, action, target string, detail any) {
		record(ctx, action, target, detail)
		stored.Add(1)
	}
	a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	const hash = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$S0VFUEtFRVBLRUVQS0VFUEtFRVBLRUVQS0VFUEtFRVA"
	document := func(deny string) string {
		return `{"deny_countries":["cn"],"unknown_country":"allow","basic_auth":[{"name":"ann","hash":"` + hash + `"}],"deny":["` + deny + `"]}`
	}
	declare := func(domain, of, policy string) {
		t.Helper()
		a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: domain, Policy: json.RawMessage(policy), PolicyHolds: true, PolicyOf: of}, startOrigin(t, text("x")))
	}
	has := func(domain, want string) {
		t.Helper()
		if p, _ := r.store.Policies.Get(claims.TargetDomain(domain + "." + r.cfg.Domain)); !strings.Contains(string(p.Document), want) {
			t.Errorf("%s has %s, want one with %s", domain, p.Document, want)
		}
	}
	for i, c := range []struct {
		deny string
		want int32
	}{{"192.0.2.1", 1}, {"192.0.2.1", 1}, {"192.0.2.2", 2}, {"192.0.2.2", 2}} {
		declare("shop", "", document(c.deny))
		if has("shop", c.deny); stored.Load() != c.want {
			t.Errorf("claim %d: stored %d times, want %d", i, stored.Load(), c.want)
		}
	}
	if err := a.call(http.MethodPut, wire.PathPolicy+"k", json.RawMessage(`{"deny":["192.0.2.3"]}`), nil); err != nil {
		t.Fatal(err)
	}
	declare("other", "shop."+r.cfg.Domain, document("192.0.2.4"))
	has("other", "192.0.2.4")
}

// TestARefusedPolicyIsRefusedOnce checks that no other name or port is tried, since that
// would not help.
func TestARefusedPolicyIsRefusedOnce(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	for kind, policy := range map[string]string{wire.TypeTCP: `{"dny":[]}`, wire.TypeHTTP: `[]`} {
		before := r.store.Claims.Count()
		err := a.call(http.MethodPut, wire.PathClaims+kind, wire.Claim{Type: kind, Mode: wire.ModeStandard, Policy: json.RawMessage(policy), PolicyReplaces: true}, nil)
		if p := problem(t, err, wire.CodeInvalid); p.Field != "policy" {
			t.Errorf("%s: %+v", kind, p)
		}
		if now := r.store.Claims.Count(); now != before {
			t.Errorf("%s: there are %d claims, and were %d", kind, now, before)
		}
	}
}

// TestPolicyGoesWithAnEphemeralTunnel checks that a policy set by a client is deleted
// with an ephemeral tunnel, unless another tunnel of the client has the same name. At
// names that may be asked for again, it stays.
func TestPolicyGoesWithAnEphemeralTunnel(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	origin := startOrigin(t, text("x"))
	claim := func(key, domain string, ephemeral bool) {
		t.Helper()
		a.mustClaim(key, wire.Claim{
			Type: wire.TypeHTTP, Mode: wire.ModeBalanced, Domain: domain, Policy: json.RawMessage(`{"rate":9}`), PolicyReplaces: true, Ephemeral: ephemeral,
		}, origin)
	}
	release := func(key, query string) {
		t.Helper()
		if err := a.call(http.MethodDelete, wire.PathClaims+key+query, nil, nil); err != nil {
			t.Error(err)
		}
	}
	guarded := func(when, domain string, want bool) {
		t.Helper()
		if _, ok := r.store.Policies.Get(claims.TargetDomain(domain + "." + r.cfg.Domain)); ok != want {
			t.Errorf("%s: %s has a policy: %v", when, domain, ok)
		}
	}
	claim("k", "shop", true)
	claim("l", "shop", true)
	release("k", "")
	guarded("another has it", "shop", true)
	release("l", "?keep=1")
	guarded("kept", "shop", true)
	claim("l", "shop", true)
	release("l", "?move=1")
	guarded("it is to have another name", "shop", true)
	claim("l", "shop", true)
	release("l", "")
	guarded("deleted", "shop", false)
	claim("k", "one", true)
	claim("k", "two", true)
	guarded("another name", "one", false)
	guarded("another name", "two", true)
	(&site{testRelay: r}).setPolicy(t, "two", `{"rate":8}`)
	release("k", "")
	guarded("the operator's", "two", true)
	claim("m", "three", false)
	release("m", "")
	guarded("not ephemeral", "three", true)
}

// TestPolicyFollowsItsTunnel gives a guarded tunnel other names and ports. It is not open
// to everybody there.
func TestPolicyFollowsItsTunnel(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	origin := startOrigin(t, text("x"))
	web := func(domain string) wire.Claim { return wire.Claim{Type: wire.TypeHTTP, Domain: domain} }
	session := r.roster.All()[0]
	const own = `"deny":["192.0.2.1"]`
	check := func(when, target, want string) {
		t.Helper()
		at, err := r.names.Target(target)
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := r.store.Policies.Get(at); !strings.Contains(string(p.Document), want) || want == "" && len(p.Document) > 0 {
			t.Errorf("%s: the policy of %s is %s, want %s", when, target, p.Document, want)
		}
	}
	a.mustClaim("k", web("one"), origin)
	if err := a.call(http.MethodPut, wire.PathPolicy+"k", json.RawMessage(`{`+own+`}`), nil); err != nil {
		t.Fatal(err)
	}
	a.mustClaim("k", web("two"), origin)
	check("renamed", "two", own)
	// What the tunnel began with is older than what it has.
	brought := web("three")
	brought.Policy, brought.PolicyReplaces = json.RawMessage(`{"rate":5}`), true
	a.mustClaim("k", brought, origin)
	check("renamed, with what it began with", "three", own)
	// Given up before, as for a name that the relay gives.
	if err := a.call(http.MethodDelete, wire.PathClaims+"k?move=1", nil, nil); err != nil {
		t.Fatal(err)
	}
	any := web("")
	any.PolicyOf = "three." + r.cfg.Domain
	g := a.mustClaim("k", any, origin)
	check("given a name", g.Domain, own)
	port := wire.Claim{Type: wire.TypeTCP, PolicyOf: g.Domain}
	check("given a port", fmt.Sprint("tcp.", a.mustClaim("l", port, origin).RemotePort), own)
	// There is one already.
	(&site{testRelay: r}).setPolicy(t, "four", `{"rate":8}`)
	a.mustClaim("k", web("four"), origin)
	check("renamed to one that the operator guards", "four", `"rate":8`)
	// The operator's are of names, and so are others'.
	a.mustClaim("k", web("five"), origin)
	check("renamed from one that the operator guards", "five", "")
	b := connect(t, r.scoped(t, "other", scope.Scope{OwnPolicies: true}), "i2")
	for _, of := range []string{"two", "two." + r.cfg.Domain, "..", "tcp.0", "other/x", "four"} {
		c := web("six")
		c.PolicyOf = of
		b.mustClaim("k", c, origin)
		check("of "+of, "six", "")
	}
	// With secrets, and one that cannot be read any more.
	const hook = `{"webhooks":[{"path":"/hook","provider":"github","secrets":["hush-hush-hush-hush"]}]}`
	if err := a.call(http.MethodPut, wire.PathPolicy+"k", json.RawMessage(hook), nil); err != nil {
		t.Fatal(err)
	}
	a.mustClaim("k", web("hooked"), origin)
	check("renamed with a secret", "hooked", "hush-hush-hush-hush")
	if err := r.store.Policies.SetBy(t.Context(), claims.TargetDomain("hooked."+r.cfg.Domain), []byte(`"AAAA"`), session.client.ID, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.claim("k", web("open"), origin); err == nil {
		t.Error("a tunnel whose policy cannot be read was renamed, and is open")
	}
	// Without leave it is not made open either.
	a.mustClaim("k", web("two"), origin)
	r.rescope(t, "shop", scope.Scope{})
	_, err := a.claim("k", web("seven"), origin)
	if p := problem(t, err, wire.CodeForbidden); p.Field != "policy" {
		t.Errorf("without leave: %+v", p)
	}
	check("without leave", "two", own)
}

// TestPoliciesAtNamesOfNobodyAreBounded ends ephemeral tunnels that had policies.
func TestPoliciesAtNamesOfNobodyAreBounded(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	origin := startOrigin(t, text("x"))
	names := []string{"old", "held", "older", "new"}
	for _, name := range names {
		a.mustClaim(name, wire.Claim{Type: wire.TypeHTTP, Domain: name, Policy: json.RawMessage(`{"rate":9}`), PolicyReplaces: true}, origin)
	}
	(&site{testRelay: r}).setPolicy(t, "nobody", `{"rate":8}`)
	session := r.roster.All()[0]
	for _, name := range []string{"older", "old", "new"} { // as when an ephemeral claim is forgotten
		target := claims.TargetDomain(name + "." + r.cfg.Domain)
		if err := r.store.Claims.Release(t.Context(), target, session.client.ID, "i1", name); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		most int
		want string
	}{{3, "held new nobody old older"}, {1, "held new nobody"}} {
		if err := session.dropOwnerless(t.Context(), c.most); err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, p := range r.store.Policies.List() {
			left = append(left, strings.TrimSuffix(claims.DomainOf(p.Target), "."+r.cfg.Domain))
		}
		if got := strings.Join(left, " "); got != c.want {
			t.Errorf("with %d at most: %s, want %s", c.most, got, c.want)
		}
	}
}

// TestPoliciesThatAreNotLeftAnyMoreAreInNobodysWay deletes, sets again or lets the
// operator take over some policies, while the client's policies at unclaimed names are
// being checked.
func TestPoliciesThatAreNotLeftAnyMoreAreInNobodysWay(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	connect(t, r.scoped(t, "shop", scope.Scope{OwnPolicies: true}), "i1")
	session, of := r.roster.All()[0], func(name string) string { return claims.TargetDomain(name + "." + r.cfg.Domain) }
	set := func(name, document, by string) {
		t.Helper()
		if err := r.store.Policies.SetBy(t.Context(), of(name), json.RawMessage(document), by, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"first", "deleted", "changed", "operators", "last"} {
		set(name, `{"rate":9}`, session.client.ID)
	}
	record := r.book.Record
	r.book.Record = func(ctx context.Context, action, target string, detail any) {
		r.book.Record = record
		if err := r.store.Policies.Delete(ctx, of("deleted")); err != nil {
			t.Error(err)
		}
		set("changed", `{"rate":8}`, session.client.ID)
		set("operators", `{"rate":7}`, "")
	}
	if err := session.dropOwnerless(t.Context(), 0); err != nil {
		t.Error(err)
	}
	var left []string
	for _, p := range r.store.Policies.List() {
		left = append(left, strings.TrimSuffix(claims.DomainOf(p.Target), "."+r.cfg.Domain))
	}
	if got := strings.Join(left, " "); got != "changed operators" {
		t.Errorf("left are the policies of %s, want those that were set meanwhile", got)
	}
}

// TestOtherNodesGuardATunnelFromTheBeginning makes visitors of another node request names
// continuously while tunnels with policies come to them. None is let in.
func TestOtherNodesGuardATunnelFromTheBeginning(t *testing.T) {
	c := startNodes(t, 2)
	c.awaitWhole(c.all...)
	token := c.all[0].scoped(t, "shop", scope.Scope{OwnPolicies: true})
	eventually(t, "the other knows the client", func() bool { _, ok := c.all[1].store.Clients.Get("shop"); return ok })
	a := connect(t, c.all[1].at(token), "i1")
	origin := startOrigin(t, text("x"))
	v := &http.Client{Transport: &http.Transport{}}
	rules := strings.Repeat(`"192.0.2.1",`, 1000) // it takes a while to be read
	for i := range 10 {
		name := fmt.Sprint("shop", i)
		a.mustClaim(name, wire.Claim{
			Type: wire.TypeHTTP, Domain: name, Policy: json.RawMessage(`{"deny":[` + rules + `"127.0.0.1"]}`), PolicyReplaces: true,
		}, origin)
		eventually(t, "the other node refuses", func() bool {
			status, _ := c.all[0].page(t, v, name+".relay.test")
			if status == http.StatusOK {
				t.Fatalf("%s: a visitor of the other node was let in", name)
			}
			return status == http.StatusForbidden
		})
	}
}
