package relay

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"adit/tunnel/relay/config"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// namedHost answers with the origin's name and the requested Host.
func namedHost(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name, " ", r.Host) })
}

// at returns a tunnel's URL with another host.
func at(url, host string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	if _, port, ok := strings.Cut(rest, ":"); ok {
		host += ":" + port
	}
	return scheme + "://" + host + "/"
}

// TestWildcardLeadsTheNamesBelow claims all names below a name with one tunnel per
// scheme, and requests several of them over each version of HTTP.
func TestWildcardLeadsTheNamesBelow(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("shop"))
	origin := startOrigin(t, namedHost("all"))
	plain := s.agent.mustClaim("all", wire.Claim{Type: wire.TypeHTTP, Domain: "*.app"}, origin)
	secure := s.agent.mustClaim("all-tls", wire.Claim{Type: wire.TypeHTTPS, Domain: "*.app.relay.test"}, origin)
	if plain.Domain != "*.app.relay.test" || !strings.HasPrefix(secure.PublicURL, "https://*.app.relay.test:") {
		t.Errorf("got %+v and %+v", plain, secure)
	}
	three := s.visitor3(t)
	for _, name := range []string{"one.app.relay.test", "x-2.app.relay.test", "under_score.app.relay.test"} {
		for url, visitor := range map[string]*http.Client{at(plain.PublicURL, name): s.visitor, at(secure.PublicURL, name): s.visitor, at(secure.PublicURL, name) + "3": three} {
			if code, body := get(t, visitor, url); code != http.StatusOK || body != "all "+strings.Split(url, "/")[2] {
				t.Errorf("%s: %d %s", url, code, body)
			}
		}
	}
	for _, name := range []string{"app.relay.test", "deep.one.app.relay.test", "appx.relay.test", "one.appx.relay.test"} {
		if code, body := get(t, s.visitor, at(plain.PublicURL, name)); code != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, code, body)
		}
		if _, err := certificate(s.testRelay, name); err == nil {
			t.Errorf("%s got a certificate", name)
		}
	}
	// All names have one certificate: strangers can ask for any number of them.
	first, err := certificate(s.testRelay, "one.app.relay.test")
	if err != nil {
		t.Fatal(err)
	}
	second, err := certificate(s.testRelay, "two.app.relay.test")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first.DNSNames, []string{"*.app.relay.test"}) || !first.Equal(second) {
		t.Errorf("certificates of %v and %v", first.DNSNames, second.DNSNames)
	}
	if c := domainOf(t, s.testRelay, "*.app.relay.test"); !c.Running || c.Certificate == nil || c.Certificate.NotAfter == nil {
		t.Errorf("the console tells of %+v", c)
	}
}

// TestNameOfItsOwnIsNotItsWildcards gives a name below a wildcard its own tunnel. While
// that is away, its visitors do not go to the wildcard's.
func TestNameOfItsOwnIsNotItsWildcards(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("shop"))
	all := s.agent.mustClaim("all", wire.Claim{Type: wire.TypeHTTP, Domain: "*.app"}, startOrigin(t, namedHost("all")))
	s.agent.mustClaim("all-tls", wire.Claim{Type: wire.TypeHTTPS, Domain: "*.app"}, startOrigin(t, namedHost("all")))
	page := func(name string) int {
		code, _ := get(t, s.visitor, at(all.PublicURL, name+".app.relay.test"))
		return code
	}
	other := connect(t, s.token, "i2")
	own := other.mustClaim("own", wire.Claim{Type: wire.TypeHTTP, Domain: "api.app.relay.test"}, startOrigin(t, namedHost("own")))
	if code, body := get(t, s.visitor, own.PublicURL); code != http.StatusOK || !strings.HasPrefix(body, "own ") {
		t.Errorf("its own: %d %s", code, body)
	}
	if page("other") != http.StatusOK {
		t.Error("another name is not served")
	}
	if got, err := certificate(s.testRelay, "api.app.relay.test"); err != nil || got.DNSNames[0] != "api.app.relay.test" {
		t.Errorf("its certificate: %v", err)
	}
	other.close()
	eventually(t, "its visitors hear that it is away", func() bool { return page("api") == http.StatusServiceUnavailable })
	other = connect(t, s.token, "i2")
	other.mustClaim("own", wire.Claim{Type: wire.TypeHTTP, Domain: "api.app.relay.test"}, startOrigin(t, namedHost("own")))
	if err := other.call(http.MethodDelete, wire.PathClaims+"own", nil, nil); err != nil {
		t.Fatal(err)
	}
	if page("api") != http.StatusOK {
		t.Error("given back, it is not the wildcard's")
	}
	// And all of them while the wildcard's agent is away.
	s.agent.close()
	eventually(t, "visitors hear that it is away", func() bool { return page("any") == http.StatusServiceUnavailable })
}

// TestWildcardIsRefusedWhereItsNamesAreAnothers claims wildcards and names for two
// clients.
func TestWildcardIsRefusedWhereItsNamesAreAnothers(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a, b := connect(t, r.client(t, "a"), "i1"), connect(t, r.client(t, "b"), "i2")
	claim := func(of *fakeAgent, name string) error {
		_, err := of.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: name}, "")
		return err
	}
	for _, name := range []string{"*", "*.relay.test", "*.*.app", "x.*.app", "*app", "*.", "*.-x"} {
		err := claim(a, name)
		var p *wire.Problem
		if !errors.As(err, &p) || p.Field != "domain" {
			t.Errorf("%q: %v", name, err)
		}
	}
	a.mustClaim("all", wire.Claim{Type: wire.TypeHTTP, Domain: "*.app"}, "")
	a.mustClaim("shop", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	a.mustClaim("deep", wire.Claim{Type: wire.TypeHTTP, Domain: "x.blog.relay.test"}, "")
	for _, name := range []string{"*.app", "one.app.relay.test", "deep.one.app.relay.test", "*.one.app.relay.test", "app", "*.shop", "*.blog", "*.x.blog.relay.test"} {
		if p := problem(t, claim(b, name), wire.CodeTaken); p.Field != "domain" {
			t.Errorf("%s: field %q", name, p.Field)
		}
	}
	for _, name := range []string{"app2", "*.app2", "*.y.blog.relay.test"} {
		if err := claim(b, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.mustClaim("under", wire.Claim{Type: wire.TypeHTTP, Domain: "one.app.relay.test"}, "") // its own
	scoped := connect(t, r.scoped(t, "c", scope.Scope{Domains: []string{"*.mine.relay.test", "part-*"}}), "i3")
	for name, allowed := range map[string]bool{"*.mine": true, "*.x.mine.relay.test": true, "*.part-1": false, "*.other": false} {
		if err := claim(scoped, name); (err == nil) != allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWildcardOfAnOwnDomain checks that it is proved by the name above it, and is lost
// when that becomes another client's.
func TestWildcardOfAnOwnDomain(t *testing.T) {
	dns := &records{}
	cfg := testConfig(t.TempDir())
	cfg.AnyDomain = true
	r := startRelayWith(t, Options{Config: cfg, lookupTXT: dns.lookup})
	first, second := connect(t, r.client(t, "first"), "i1"), connect(t, r.client(t, "second"), "i2")
	o := r.operator()
	record := func(client string) string {
		c, err := o.Client(client)
		if err != nil {
			t.Fatal(err)
		}
		return c.Proof.Value
	}
	claim := wire.Claim{Type: wire.TypeHTTP, Domain: "*.shop.example"}
	_, err := first.claim("k", claim, "")
	if p := problem(t, err, wire.CodeForbidden); !strings.Contains(p.Message, "to use *.shop.example") || !strings.Contains(p.Message, "record _adit.shop.example with") {
		t.Errorf("refused with %q", p.Message)
	}
	dns.set("_adit.shop.example.", record("first"))
	first.mustClaim("k", claim, "")
	listed := func() string {
		var list []string
		for _, d := range o.DomainList(t.Context()) {
			list = append(list, strings.TrimSpace(d.Domain+" "+d.Client+" "+d.Proof))
		}
		return strings.Join(list, "; ")
	}
	if got := listed(); got != "*.shop.example first record" {
		t.Errorf("listed: %s", got)
	}
	first.mustClaim("base", wire.Claim{Type: wire.TypeHTTP, Domain: "shop.example"}, "")
	if got := listed(); got != "*.shop.example first record; shop.example first record" {
		t.Errorf("listed: %s", got)
	}
	dns.set("_adit.shop.example.", record("second"))
	second.mustClaim("k", claim, "")
	lost := []string{first.event(wire.EventClaimLost).Key, first.event(wire.EventClaimLost).Key}
	if slices.Sort(lost); !slices.Equal(lost, []string{"base", "k"}) {
		t.Errorf("lost: %v", lost)
	}
	// The proof stays for as long as a name needs it.
	second.mustClaim("base", wire.Claim{Type: wire.TypeHTTP, Domain: "shop.example"}, "")
	second.close()
	for _, release := range []struct{ name, left string }{
		{"shop.example", "*.shop.example second record"}, {"*.shop.example", ""},
	} {
		eventually(t, "released", func() bool { return o.ReleaseClaim(t.Context(), release.name) == nil })
		if got := listed(); got != release.left {
			t.Errorf("after the release of %s: %q", release.name, got)
		}
	}
	var refusal *console.Error
	if err := o.ReleaseClaim(t.Context(), "*.shop.example"); !errors.As(err, &refusal) || refusal.Status != http.StatusNotFound {
		t.Errorf("once more: %v", err)
	}
}

// TestPolicyOfAWildcard checks that a wildcard's policy applies to all its names, and
// that a policy for a single name is not bypassed.
func TestPolicyOfAWildcard(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("shop"))
	o := s.operator()
	s.setPolicy(t, "secret.app.relay.test", `{"deny":["127.0.0.0/8"]}`)
	all := s.agent.mustClaim("all", wire.Claim{Type: wire.TypeHTTP, Domain: "*.app"}, startOrigin(t, namedHost("all")))
	page := func(name string) int {
		code, _ := get(t, s.visitor, at(all.PublicURL, name+".app.relay.test"))
		return code
	}
	if a, b := page("one"), page("secret"); a != http.StatusOK || b != http.StatusNotFound {
		t.Errorf("got %d, and %d for the name with a policy", a, b)
	}
	_, err := o.SetPolicy(t.Context(), "one.app.relay.test", []byte(`{"deny":["127.0.0.0/8"]}`), nil)
	var refusal *console.Error
	if !errors.As(err, &refusal) || refusal.Status != http.StatusConflict || !strings.Contains(err.Error(), "*.app.relay.test") {
		t.Errorf("a policy of one name: %v", err)
	}
	if page("one") != http.StatusOK {
		t.Error("the refused policy has an effect")
	}
	s.setPolicy(t, "*.app", `{"deny":["127.0.0.0/8"]}`)
	eventually(t, "the policy is in force", func() bool { return page("one") == http.StatusForbidden })
	for _, target := range []string{"one.app.relay.test", "*.app", "*.app.relay.test"} {
		if e, err := o.Explain(console.Question{Target: target, Address: "127.0.0.1"}); err != nil || e.Target != "*.app.relay.test" || e.Rule != "deny" {
			t.Errorf("explain %s: %+v, %v", target, e, err)
		}
	}
	// What was set for one name can be changed and taken back.
	s.setPolicy(t, "secret.app.relay.test", `{"deny":["192.0.2.0/24"]}`)
	if err := o.DeletePolicy(t.Context(), "secret.app.relay.test", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the name is the wildcard's", func() bool { return page("secret") == http.StatusForbidden })
}

// TestWildcardAtAnotherNode asks a node that does not have the agent.
func TestWildcardAtAnotherNode(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startNodes(t, 2)
	a := connect(t, c.all[1].at(c.clientEverywhere("shop")), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "*.app"}, startOrigin(t, text("all")))
	everywhere(t, c.all, &http.Client{Transport: &http.Transport{}}, "one.app.relay.test", "all")
}

// TestCertificatesOfWildcards checks that https needs an authority's certificate, which
// is available with one challenge only.
func TestCertificatesOfWildcards(t *testing.T) {
	t.Parallel() // most of it is waiting
	claim := wire.Claim{Type: wire.TypeHTTPS, Domain: "*.app"}
	t.Run("http-01", func(t *testing.T) {
		l := newACMELab(t, "http-01")
		l.start(t)
		r := startRelay(t, l.cfg)
		a := connect(t, r.client(t, "shop"), "i1")
		_, err := a.claim("k", claim, "")
		if p := problem(t, err, wire.CodeForbidden); p.Field != "domain" || !strings.Contains(p.Message, "dns-01") {
			t.Errorf("refused with %+v", p)
		}
		a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "*.app"}, "")
		if _, err := certificate(r, "one.app.relay.test"); err == nil {
			t.Error("a name below has a certificate")
		}
		if strings.Contains(l.log(), "app.relay.test") {
			t.Error("the authority was asked")
		}
	})
	t.Run("dns-01", func(t *testing.T) {
		l := newACMELab(t, "http-01", "dns-01")
		l.cfg.ACME.DNS = config.ACMEDNS{
			Provider: "rfc2136", Server: l.zone.addr, Resolvers: []string{l.zone.addr},
			Key: "adit", Secret: config.Secret(zoneSecret), Algorithm: "hmac-sha512",
		}
		l.start(t)
		r := startRelay(t, l.cfg)
		a := connect(t, r.client(t, "shop"), "i1")
		a.mustClaim("k", claim, startOrigin(t, text("all")))
		first, second := mustCertificate(t, r, "one.app.relay.test"), mustCertificate(t, r, "two.app.relay.test")
		if !first.Equal(second) || !slices.Equal(first.DNSNames, []string{"*.app.relay.test"}) {
			t.Errorf("got certificates of %v and %v, want one wildcard", first.DNSNames, second.DNSNames)
		}
		if c := domainOf(t, r, "*.app.relay.test").Certificate; c == nil || c.Source != console.CertificateACME || c.NotAfter == nil || !c.NotAfter.Equal(first.NotAfter) {
			t.Errorf("the console tells of %+v", c)
		}
	})
	t.Run("file", func(t *testing.T) {
		cfg := testConfig(t.TempDir())
		wildcardFiles(t, &cfg, "*.app.relay.test")
		cfg.ACME = &config.ACME{Directory: "https://127.0.0.1:1/dir", Challenges: []string{"http-01"}}
		r := startRelay(t, cfg)
		a := connect(t, r.client(t, "shop"), "i1")
		a.mustClaim("k", claim, "")
		if cert, err := certificate(r, "one.app.relay.test"); err != nil || cert.DNSNames[0] != "*.app.relay.test" {
			t.Errorf("got %v", err)
		}
		if c := domainOf(t, r, "*.app.relay.test").Certificate; c == nil || c.Source != console.CertificateFile {
			t.Errorf("the console tells of %+v", c)
		}
	})
}

// TestWildcardTLSIsPassedThrough finds the endpoint of type tls by one of its names.
func TestWildcardTLSIsPassedThrough(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("shop"))
	s.agent.mustClaim("all", wire.Claim{Type: wire.TypeTLS, Domain: "*.app"}, "")
	if ep := s.edge.Endpoints(); len(ep) != 3 {
		t.Fatalf("%d endpoints", len(ep))
	}
	if _, err := certificate(s.testRelay, "one.app.relay.test"); err == nil {
		t.Error("the edge ended its TLS")
	}
	if code, body := get(t, s.visitor, at(s.http, "one.app.relay.test")); code != http.StatusNotFound || !strings.Contains(body, "type tls") {
		t.Errorf("by plain HTTP: %d %s", code, body)
	}
}
