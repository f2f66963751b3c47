package policy

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"adit/internal/certtest"
)

// certified returns a policy that lets in the named holders of certificates from an
// authority.
func certified(t *testing.T, more string, authorities string, names ...string) *Policy {
	t.Helper()
	doc, err := json.Marshal(ClientCertificates{Authorities: authorities, Names: names})
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, `{"client_certificates":`+string(doc)+more+`}`)
}

func presents(t *testing.T, chain ...[]byte) *Presented {
	t.Helper()
	p, err := ReadPresented(certtest.PEM(chain...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCertificatesAreJudged(t *testing.T) {
	now := time.Now()
	home, other := certtest.New(t, "Home"), certtest.New(t, "Home") // both have one name
	between := home.Below(t, "Phones")
	bound := home.Below(t, "Bound", func(c *x509.Certificate) { c.PermittedEmailAddresses = []string{"example.org"} })
	gone := home.Below(t, "Gone", func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Minute) })
	servers := home.Below(t, "Servers", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	self, selfless := certtest.Self(t, "pinned"), certtest.Self(t, "pinned")
	mail := func(address string) certtest.Change {
		return func(c *x509.Certificate) { c.EmailAddresses = []string{address} }
	}
	ann := home.Client(t, "Ann", mail("Ann@Example.com"))
	phone := between.Client(t, "phone", func(c *x509.Certificate) { c.DNSNames = []string{"Phone.example.com"} })
	robot := home.Client(t, "", func(c *x509.Certificate) {
		c.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.com", Path: "/robot"}}
	})
	upper := "SHA256:" + strings.ToUpper(strings.TrimPrefix(fingerprintOf(ann.Leaf), "sha256:"))
	for name, c := range map[string]struct {
		authorities string
		names       []string
		presented   [][]byte
		rule        string
	}{
		"none":                             {home.PEM(), nil, nil, RuleCertificate},
		"issued":                           {home.PEM(), nil, ann.Certificate, ""},
		"one of two authorities":           {other.PEM() + home.PEM(), nil, ann.Certificate, ""},
		"an authority between":             {home.PEM(), nil, phone.Certificate, ""},
		"it is not sent":                   {home.PEM(), nil, phone.Certificate[:1], RuleCertificateIssuer},
		"it is the authority":              {between.PEM(), nil, phone.Certificate[:1], ""},
		"the root is sent, too":            {home.PEM(), nil, append(phone.Certificate[:2:2], home.Certificate.Raw), ""},
		"one of another of that name":      {home.PEM(), nil, other.Client(t, "Ann").Certificate, RuleCertificateIssuer},
		"its own issuer":                   {home.PEM(), nil, self.Certificate, RuleCertificateIssuer},
		"its own issuer, and meant":        {certtest.PEM(self.Certificate...), nil, self.Certificate, ""},
		"its own issuer, and another":      {certtest.PEM(self.Certificate...), nil, selfless.Certificate, RuleCertificateIssuer},
		"an authority's own":               {home.PEM(), nil, [][]byte{home.Certificate.Raw}, ""},
		"out of date":                      {home.PEM(), nil, home.Client(t, "x", func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Minute) }).Certificate, RuleCertificateTime},
		"not yet":                          {home.PEM(), nil, home.Client(t, "x", func(c *x509.Certificate) { c.NotBefore = now.Add(time.Minute) }).Certificate, RuleCertificateTime},
		"an authority that is out of date": {home.PEM(), nil, gone.Client(t, "x").Certificate, RuleCertificateTime},
		"for servers":                      {home.PEM(), nil, home.Client(t, "x", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }).Certificate, RuleCertificateIssuer},
		"an authority for servers":         {home.PEM(), nil, servers.Client(t, "x").Certificate, RuleCertificateIssuer},
		"for whatever":                     {home.PEM(), nil, home.Client(t, "x", func(c *x509.Certificate) { c.ExtKeyUsage = nil }).Certificate, ""},
		"by one that is no authority":      {home.PEM(), nil, certtest.Forged(t, ann, "Eve").Certificate, RuleCertificateIssuer},
		"within bounds":                    {home.PEM(), nil, bound.Client(t, "x", mail("a@example.org")).Certificate, ""},
		"out of bounds":                    {home.PEM(), nil, bound.Client(t, "x", mail("a@example.com")).Certificate, RuleCertificateIssuer},
		"an address":                       {home.PEM(), []string{"ann@example.COM"}, ann.Certificate, ""},
		"a domain":                         {home.PEM(), []string{"@example.com"}, ann.Certificate, ""},
		"another domain":                   {home.PEM(), []string{"@ample.com", "@le.com"}, ann.Certificate, RuleCertificateWho},
		"a common name":                    {home.PEM(), []string{"nobody", "Ann"}, ann.Certificate, ""},
		"a common name in another case":    {home.PEM(), []string{"ann"}, ann.Certificate, RuleCertificateWho},
		"a DNS name":                       {home.PEM(), []string{"phone.example.com"}, phone.Certificate, ""},
		"a part of one":                    {home.PEM(), []string{"example.com", "*.example.com"}, phone.Certificate, RuleCertificateWho},
		"a URI":                            {home.PEM(), []string{"spiffe://example.com/robot"}, robot.Certificate, ""},
		"another URI":                      {home.PEM(), []string{"spiffe://example.com/"}, robot.Certificate, RuleCertificateWho},
		"a fingerprint":                    {home.PEM(), []string{upper}, ann.Certificate, ""},
		"another fingerprint":              {home.PEM(), []string{upper}, phone.Certificate, RuleCertificateWho},
		"an empty name is no name":         {home.PEM(), []string{"x"}, home.Client(t, "").Certificate, RuleCertificateWho},
		"an address as common name":        {home.PEM(), []string{"ann@example.com"}, home.Client(t, "ann@example.com").Certificate, RuleCertificateWho},
		"a domain as DNS name":             {home.PEM(), []string{"@example.com"}, home.Client(t, "x", func(c *x509.Certificate) { c.DNSNames = []string{"@example.com"} }).Certificate, RuleCertificateWho},
		"a URI as common name":             {home.PEM(), []string{"spiffe://example.com/robot"}, home.Client(t, "spiffe://example.com/robot").Certificate, RuleCertificateWho},
		"a fingerprint as common name":     {home.PEM(), []string{upper}, home.Client(t, fingerprintOf(ann.Leaf)).Certificate, RuleCertificateWho},
		"named, and of another authority":  {home.PEM(), []string{"Ann"}, other.Client(t, "Ann").Certificate, RuleCertificateIssuer},
	} {
		t.Run(name, func(t *testing.T) {
			p := certified(t, "", c.authorities, c.names...)
			r := Request{Addr: netip.MustParseAddr("192.0.2.1"), HTTP: true}
			if c.presented != nil {
				r.Certificate = presents(t, c.presented...)
			}
			got, release := p.Enter(r, now)
			defer release()
			if got.Rule != c.rule {
				t.Errorf("got %+v, want %q", got, c.rule)
			}
			explained, steps := p.Explain(r, now)
			if explained.Rule != c.rule || len(steps) != 1 || steps[0].Detail == "" {
				t.Errorf("explained as %+v: %+v", explained, steps)
			}
			if stays := p.Keeps(Guest{Addr: r.Addr, Target: "/", Certificate: r.Certificate}, now); stays.Rule != c.rule {
				t.Errorf("whether it may stay: %+v", stays)
			}
			if status := Status(got.Rule); !got.Allowed && (status != 403 || Text(got.Rule) == Text(RuleDeny)) {
				t.Errorf("refused with %d, %q", status, Text(got.Rule))
			}
		})
	}
}

// TestVerdictsOnCertificatesGoByTime asks about one visitor as time passes: a verdict
// does not outlast its certificate.
func TestVerdictsOnCertificatesGoByTime(t *testing.T) {
	start := time.Now()
	home := certtest.New(t, "Home", func(c *x509.Certificate) { c.NotAfter = start.Add(2 * time.Hour) })
	ann := home.Client(t, "Ann", func(c *x509.Certificate) { c.NotBefore, c.NotAfter = start.Add(time.Hour), start.Add(3*time.Hour) })
	p, q := certified(t, "", home.PEM()), certified(t, "", certtest.New(t, "Home").PEM())
	r := Request{Addr: netip.MustParseAddr("192.0.2.1"), HTTP: true, Certificate: presents(t, ann.Certificate...)}
	guest := Guest{Addr: r.Addr, Target: "/", Certificate: r.Certificate}
	for _, c := range []struct {
		at   time.Duration
		rule string
	}{
		{0, RuleCertificateTime},
		{time.Hour + time.Minute, ""},
		{2*time.Hour - time.Minute, ""},
		{2*time.Hour + time.Minute, RuleCertificateTime}, // the authority's own has run out
		{90 * time.Minute, ""},                           // a clock was set back
		{30 * time.Minute, RuleCertificateTime},
	} {
		now := start.Add(c.at)
		if d, release := p.Enter(r, now); d.Rule != c.rule {
			t.Errorf("after %v: %+v, want %q", c.at, d, c.rule)
		} else {
			release()
		}
		if d := p.Keeps(guest, now); d.Rule != c.rule {
			t.Errorf("after %v it may stay: %+v, want %q", c.at, d, c.rule)
		}
		if d := q.Keeps(guest, now); d.Allowed {
			t.Errorf("after %v another policy lets in what this one does", c.at)
		}
	}
	if !p.Timed() {
		t.Error("nobody looks whether certificates have run out")
	}
}

func TestCertificatesBesideOtherDoors(t *testing.T) {
	now := time.Now()
	home := certtest.New(t, "Home")
	const password, company = `,"basic_auth":[{"name":"robot","password":"secret"}]`, `,"sign_in":{"provider":"company","emails":["@example.com"]}`
	only, passwords := certified(t, "", home.PEM()), certified(t, password, home.PEM())
	signIn, all := certified(t, company, home.PEM()), certified(t, company+password, home.PEM())
	good, bad := presents(t, home.Client(t, "phone").Certificate...), presents(t, certtest.Self(t, "eve").Certificate...)
	ann := &Identity{Provider: "company", Email: "ann@example.com", Until: now.Add(time.Hour)}
	for name, c := range map[string]struct {
		p    *Policy
		r    Request
		rule string
		who  string
	}{
		"a certificate":                        {all, Request{HTTP: true, Certificate: good}, "", "phone"},
		"a certificate and a wrong password":   {all, Request{HTTP: true, Certificate: good, User: "robot", Password: "guess", HasUser: true}, "", "phone"},
		"a certificate and an identity":        {all, Request{HTTP: true, Certificate: good, Identity: ann}, "", "ann@example.com"},
		"a password":                           {passwords, Request{HTTP: true, Certificate: bad, User: "robot", Password: "secret", HasUser: true}, "", "robot"},
		"a wrong password":                     {passwords, Request{HTTP: true, Certificate: bad, User: "robot", Password: "guess", HasUser: true}, RuleBasicAuth, ""},
		"nothing, where a password will do":    {passwords, Request{HTTP: true}, RuleBasicAuth, ""},
		"nothing, where a sign-in will do":     {signIn, Request{HTTP: true}, RuleSignIn, ""},
		"a wrong one, where a sign-in will do": {signIn, Request{HTTP: true, Certificate: bad}, RuleSignIn, ""},
		"a password where there is none":       {only, Request{HTTP: true, User: "robot", Password: "secret", HasUser: true}, RuleCertificate, ""},
		"not asked":                            {only, Request{HTTP: true, Unasked: true}, RuleCertificateUnasked, ""},
		"not asked, where a sign-in will do":   {signIn, Request{HTTP: true, Unasked: true}, RuleCertificateUnasked, ""},
		"not asked, and signed in":             {signIn, Request{HTTP: true, Unasked: true, Identity: ann}, "", "ann@example.com"},
		"not asked, and a password":            {all, Request{HTTP: true, Unasked: true, User: "robot", Password: "secret", HasUser: true}, "", "robot"},
		"a connection":                         {only, Request{Certificate: good}, RuleCertificate, ""},
		"a connection, and not asked":          {only, Request{Unasked: true}, RuleCertificate, ""},
	} {
		c.r.Addr, c.r.Target = netip.MustParseAddr("192.0.2.1"), "/"
		if !c.r.HTTP {
			c.r.Target = ""
		}
		got, release := c.p.Enter(c.r, now)
		release()
		if got.Rule != c.rule {
			t.Errorf("%s: %+v, want %q", name, got, c.rule)
		}
		if explained, _ := c.p.Explain(c.r, now); explained.Rule != c.rule && !c.r.Unasked {
			t.Errorf("%s: explained as %+v", name, explained)
		}
		if !got.Allowed {
			continue
		}
		if g := c.p.Guest(c.r, now); g.Name() != c.who || !c.p.Keeps(g, now).Allowed {
			t.Errorf("%s: let in as %q", name, g.Name())
		}
	}
	if Status(RuleCertificateUnasked) != 421 {
		t.Error("a browser is not told to open another connection")
	}
	_, steps := passwords.Explain(Request{Addr: netip.MustParseAddr("192.0.2.1"), HTTP: true, Certificate: bad}, now)
	if len(steps) != 2 || steps[0].Rule != RuleBasicAuth || steps[1].Rule != RuleCertificateIssuer {
		t.Errorf("a wrong certificate where a password will do is explained as %+v", steps)
	}
	// What is open ends when its door is shut.
	g := all.Guest(Request{Addr: netip.MustParseAddr("192.0.2.1"), HTTP: true, Target: "/", Certificate: good}, now)
	for name, p := range map[string]*Policy{
		RuleBasicAuth: parsed(t, `{`+password[1:]+`}`), RuleSignIn: parsed(t, `{`+company[1:]+`}`), RuleCertificateIssuer: certified(t, "", certtest.New(t, "Home").PEM()), "": parsed(t, `{}`),
	} {
		if d := p.Keeps(g, now); d.Rule != name {
			t.Errorf("who came by a certificate: %+v, want %q", d, name)
		}
	}
	if d := all.Keeps(Guest{Addr: g.Addr, Target: "/"}, now); d.Allowed {
		t.Error("who came without anything may stay where certificates are asked for")
	}
}

func TestClientCertificateFaults(t *testing.T) {
	home := certtest.New(t, "Home")
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	var many strings.Builder
	for range maxAuthorities + 1 {
		many.WriteString(certtest.New(t, "x").PEM())
	}
	const authorities = "client_certificates.authorities"
	for text, want := range map[string]string{
		"": "no PEM certificate", "ca.pem": "no PEM certificate", private: "private key", home.PEM() + private: "private key",
		strings.Repeat(" ", maxAuthorityText+1): "more than 64 KiB", many.String(): "more than 16",
		"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n":                 "cannot be read",
		"-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n": "CERTIFICATE REQUEST",
		certtest.PEM(home.Client(t, "phone").Certificate...):                             "not an authority's",
	} {
		doc, _ := json.Marshal(map[string]any{"client_certificates": map[string]any{"authorities": text}})
		_, err := Parse(doc)
		var fault *FieldError
		if !errors.As(err, &fault) || fault.Field != authorities || !strings.Contains(fault.Message, want) {
			t.Errorf("%.60q: got %v, want %q", text, err, want)
		}
	}
	for name, field := range map[string]string{
		"": "client_certificates.names[1]", " ": "client_certificates.names[1]", "sha256:12": "client_certificates.names[1]",
		"sha256:" + strings.Repeat("g", 64): "client_certificates.names[1]", "@": "client_certificates.names[1]", strings.Repeat("n", 257): "client_certificates.names[1]",
	} {
		doc, _ := json.Marshal(map[string]any{"client_certificates": ClientCertificates{Authorities: home.PEM(), Names: []string{"Ann", name}}})
		_, err := Parse(doc)
		var fault *FieldError
		if !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("%q: got %v, want a fault of %s", name, err, field)
		}
	}
	// What is kept has the certificates alone, each once.
	if d := certified(t, "", "Certificate:\n    Data:\n"+home.PEM()+"\n# the same\n"+home.PEM()).Document(); d.ClientCertificates.Authorities != home.PEM() {
		t.Errorf("kept as %q", d.ClientCertificates.Authorities)
	}
	if shown := certified(t, "", home.PEM()).Document().Redacted(); shown.ClientCertificates.Authorities != home.PEM() {
		t.Error("the authorities are not shown")
	}
	noted := certified(t, "", home.PEM(), "Ann").Document().Noted().ClientCertificates
	if noted.Authorities != fingerprintOf(home.Certificate)+" CN=Home" || len(noted.Names) != 1 {
		t.Errorf("noted as %+v", noted)
	}
	if d := New(Document{ClientCertificates: &ClientCertificates{Authorities: "damaged"}}, nil).Keeps(Guest{}, time.Now()); d.Allowed {
		t.Error("authorities that cannot be read let in")
	}
}

// TestPresentedIsBounded presents certificates that are expensive to verify.
func TestPresentedIsBounded(t *testing.T) {
	home := certtest.New(t, "Home")
	at := home
	for range MaxPresented {
		at = at.Below(t, "More")
	}
	ann := at.Client(t, "Ann")
	var chain []*x509.Certificate
	for _, der := range ann.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, c)
	}
	p := certified(t, "", home.PEM())
	r := Request{Addr: netip.MustParseAddr("192.0.2.1"), HTTP: true, Certificate: NewPresented(chain)}
	if d, _ := p.Enter(r, time.Now()); d.Rule != RuleCertificateIssuer || !strings.Contains(d.Detail, "more than 10") {
		t.Errorf("%d certificates: %+v", len(chain), d)
	}
	long := home.Client(t, "Ann", func(c *x509.Certificate) {
		for range 2000 {
			c.DNSNames = append(c.DNSNames, "a-name-of-some-length.example.com")
		}
	})
	if _, err := ReadPresented(certtest.PEM(long.Certificate...)); err == nil {
		t.Error("a certificate of 70 kB is read")
	}
	if d, _ := p.Enter(Request{Addr: r.Addr, HTTP: true, Certificate: NewPresented([]*x509.Certificate{long.Leaf})}, time.Now()); d.Rule != RuleCertificateIssuer {
		t.Errorf("a certificate of 70 kB: %+v", d)
	}
	if NewPresented(nil) != nil {
		t.Error("nothing is something")
	}
}

func FuzzClientCertificates(f *testing.F) {
	f.Add("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", "sha256:00")
	f.Add("-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n", "@example.com")
	f.Add("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n-----BEGIN", "ann@example.com")
	f.Fuzz(func(t *testing.T, authorities, name string) {
		c := &ClientCertificates{Authorities: authorities, Names: []string{name}}
		if c.check() == nil {
			kept := ClientCertificates{Authorities: c.Authorities, Names: []string{c.Names[0]}}
			if err := kept.check(); err != nil || kept.Authorities != c.Authorities || kept.Names[0] != c.Names[0] {
				t.Fatalf("what is kept is %+v, and then %+v: %v", c, kept, err)
			}
		}
		if p, err := ReadPresented(authorities); err == nil {
			c.gate().decide(p, time.Now())
			_, _ = p.Label(), p.Email()
		}
	})
}

func BenchmarkCertificates(b *testing.B) {
	home := certtest.New(b, "Home")
	ann := home.Below(b, "Phones").Client(b, "Ann")
	p := New(Document{ClientCertificates: &ClientCertificates{Authorities: home.PEM()}}, nil)
	shown, err := ReadPresented(certtest.PEM(ann.Certificate...))
	if err != nil {
		b.Fatal(err)
	}
	r, now := Request{HTTP: true, Certificate: shown}, time.Now()
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if d, _, _ := p.gate.judge(shown.chain, now); !d.Allowed {
				b.Fatal(d)
			}
		}
	})
	b.Run("next", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if d := p.presents(r, now); !d.Allowed {
				b.Fatal(d)
			}
		}
	})
}
