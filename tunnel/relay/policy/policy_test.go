package policy

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
)

// atlas is a database for tests: the country of the last byte.
type atlas map[byte][2]string

func (a atlas) Country(addr netip.Addr) (string, string, bool) {
	b := addr.AsSlice()
	c, ok := a[b[len(b)-1]]
	return c[0], c[1], ok
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func parse(tb testing.TB, text string) Document {
	tb.Helper()
	d, err := Parse([]byte(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return d
}

func TestAddressRules(t *testing.T) {
	geo := func() Geo { return atlas{1: {"CN", "GD"}, 2: {"US", "CA"}, 3: {"DE", ""}} }
	for _, c := range []struct {
		doc, addr, rule string
		geo             func() Geo
	}{
		{`{}`, "203.0.113.9", "", nil},
		{`{"deny":["203.0.113.0/24"]}`, "203.0.113.9", RuleDeny, nil},
		{`{"deny":["203.0.113.0/24"]}`, "::ffff:203.0.113.9", RuleDeny, nil},
		{`{"deny":["::ffff:203.0.113.0/120"]}`, "203.0.113.9", RuleDeny, nil},
		{`{"deny":["203.0.113.9"]}`, "203.0.113.10", "", nil},
		{`{"allow":["10.0.0.0/8","2001:db8::/32"]}`, "2001:db8::1", "", nil},
		{`{"allow":["10.0.0.0/8"]}`, "2001:db8::1", RuleAllow, nil},
		{`{"allow":["10.0.0.0/8"],"deny":["10.1.0.0/16"]}`, "10.1.2.3", RuleDeny, nil},
		{`{"deny_countries":["cn"]}`, "10.0.0.1", RuleDenyCountry, geo},
		{`{"deny_countries":["US-NY"]}`, "10.0.0.2", "", geo},
		{`{"deny_countries":["US-CA"]}`, "10.0.0.2", RuleDenyCountry, geo},
		{`{"allow_countries":["DE"]}`, "10.0.0.3", "", geo},
		{`{"allow_countries":["DE"]}`, "10.0.0.1", RuleAllowCountry, geo},
		{`{"allow_countries":["DE"]}`, "10.0.0.9", RuleUnknownCountry, geo},
		{`{"allow_countries":["DE"],"unknown_country":"allow"}`, "10.0.0.9", "", geo},
		{`{"deny_countries":["CN"]}`, "10.0.0.1", RuleUnknownCountry, nil},
		{`{"deny_countries":["CN"],"unknown_country":"allow"}`, "10.0.0.1", "", nil},
	} {
		got := New(parse(t, c.doc), c.geo).standing(addr(c.addr), time.Now())
		if got.Rule != c.rule || got.Allowed != (c.rule == "") {
			t.Errorf("%s for %s: got %+v, want rule %q", c.doc, c.addr, got, c.rule)
		}
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	for doc, field := range map[string]string{
		``:                                "policy",
		`[]`:                              "policy",
		`null`:                            "policy",
		`"{}"`:                            "policy",
		`{} {}`:                           "policy",
		`{"alow":[]}`:                     "alow",
		`{"rate":"5"}`:                    "rate",
		`{"deny":["1.2.3.4/33"]}`:         "deny[0]",
		`{"allow":["1.2.3.4","x"]}`:       "allow[1]",
		`{"allow_countries":["Germany"]}`: "allow_countries[0]",
		`{"unknown_country":"maybe"}`:     "unknown_country",
		`{"connections":-1}`:              "connections",
		`{"rate":-1}`:                     "rate",
		`{"max_body":-1}`:                 "max_body",
		`{"bandwidth":1}`:                 "bandwidth",
		`{"hours":{"zone":"Mars/Base","open":[{"from":"08:00","to":"09:00"}]}}`:        "hours.zone",
		`{"hours":{"zone":"Local","open":[{"from":"08:00","to":"09:00"}]}}`:            "hours.zone",
		`{"hours":{"zone":"../../etc/passwd","open":[{"from":"08:00","to":"09:00"}]}}`: "hours.zone",
		`{"hours":{"open":[]}}`: "hours.open",
		`{"hours":{"open":[{"days":["mon","funday"],"from":"08:00","to":"09:00"}]}}`:                                  "hours.open[0].days",
		`{"hours":{"open":[{"from":"24:00","to":"09:00"}]}}`:                                                          "hours.open[0].from",
		`{"hours":{"open":[{"from":"8:00","to":"09:00"}]}}`:                                                           "hours.open[0].from",
		`{"hours":{"open":[{"from":"08:00","to":"25:00"}]}}`:                                                          "hours.open[0].to",
		`{"basic_auth":[{"name":"a:b","password":"x"}]}`:                                                              "basic_auth[0].name",
		`{"basic_auth":[{"name":"a"}]}`:                                                                               "basic_auth[0].password",
		`{"basic_auth":[{"name":"a","hash":"plaintext"}]}`:                                                            "basic_auth[0].hash",
		`{"basic_auth":[{"name":"a","hash":"$argon2id$v=19$m=99999999,t=1,p=1$c2FsdHNhbHQ$c3Vtc3Vtc3Vtc3Vtc3Vtcw"}]}`: "basic_auth[0].hash",
	} {
		_, err := Parse([]byte(doc))
		var f *FieldError
		if !errors.As(err, &f) || field != "" && f.Field != field {
			t.Errorf("%s: got %v, want field %s", doc, err, field)
		}
	}
}

func TestPasswords(t *testing.T) {
	salt := []byte("saltsalt")
	sum := argon2.IDKey([]byte("argon"), salt, 1, 64, 1, 32)
	hash := fmt.Sprintf("$argon2id$v=19$m=64,t=1,p=1$%s$%s", base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum))
	d := parse(t, `{"basic_auth":[{"name":"ann","password":"bcrypt"},{"name":"bob","hash":"`+hash+`"}]}`)
	if text, _ := json.Marshal(d); d.BasicAuth[0].Password != "" || d.BasicAuth[0].Hash == "" {
		t.Errorf("the password is kept: %s", text)
	}
	if r := d.Redacted(); r.BasicAuth[0].Hash != "" || d.BasicAuth[0].Hash == "" {
		t.Error("the hash is shown, or the document itself lost it")
	}
	p := New(d, nil)
	for _, c := range []struct {
		user, password string
		has, http      bool
		want           bool
	}{
		{"ann", "bcrypt", true, true, true},
		{"ann", "bcrypt", true, true, true}, // remembered
		{"bob", "argon", true, true, true},
		{"bob", "bcrypt", true, true, false},
		{"eve", "bcrypt", true, true, false},
		{"", "", false, true, false},
		{"ann", "bcrypt", true, false, false},
	} {
		got, release := p.Enter(Request{Addr: addr("10.0.0.1"), HTTP: c.http, User: c.user, Password: c.password, HasUser: c.has}, time.Now())
		release()
		if got.Allowed != c.want || !c.want && got.Rule != RuleBasicAuth {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
	now := time.Now()
	for range triesBurst {
		p.Enter(Request{Addr: addr("10.0.0.2"), HTTP: true, User: "ann", Password: "guess", HasUser: true}, now)
	}
	right := Request{Addr: addr("10.0.0.2"), HTTP: true, User: "ann", Password: "bcrypt", HasUser: true}
	if got, _ := p.Enter(right, now); got.Rule != RuleTries {
		t.Errorf("after %d guesses: got %+v", triesBurst, got)
	}
	if got, _ := p.Enter(right, now.Add(time.Minute)); !got.Allowed {
		t.Errorf("a minute later: got %+v", got)
	}
	right.Addr = addr("10.0.0.3")
	if got, _ := p.Enter(right, now); !got.Allowed {
		t.Errorf("from another address: got %+v", got)
	}
}

func TestCountsAndRates(t *testing.T) {
	p := New(parse(t, `{"connections":3,"connections_per_address":2}`), nil)
	now := time.Now()
	enter := func(a string) (Decision, func()) { return p.Enter(Request{Addr: addr(a)}, now) }
	_, one := enter("10.0.0.1")
	enter("10.0.0.1")
	if d, _ := enter("10.0.0.1"); d.Rule != RulePerAddress {
		t.Errorf("third of an address: %+v", d)
	}
	enter("2001:db8::1")
	if d, _ := enter("10.0.0.9"); d.Rule != RuleConnections {
		t.Errorf("fourth of all: %+v", d)
	}
	one()
	one() // a second time counts nothing
	if d, _ := enter("10.0.0.1"); !d.Allowed {
		t.Errorf("after one left: %+v", d)
	}
	if d, _ := enter("10.0.0.9"); d.Rule != RuleConnections {
		t.Errorf("fourth again: %+v", d)
	}

	p = New(parse(t, `{"rate":2,"burst":3}`), nil)
	allowed := 0
	for range 10 {
		if d, _ := enterAt(p, now); d.Allowed {
			allowed++
		}
	}
	if allowed != 3 {
		t.Errorf("%d at once, want the burst of 3", allowed)
	}
	if d, _ := enterAt(p, now.Add(500*time.Millisecond)); !d.Allowed {
		t.Errorf("half a second later: %+v", d)
	}
	if d, _ := enterAt(p, now.Add(500*time.Millisecond)); d.Allowed {
		t.Error("twice in that moment")
	}
	for i := range maxBuckets + 1000 {
		p.Enter(Request{Addr: netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})}, now)
	}
	if len(p.rates) > maxBuckets {
		t.Errorf("%d addresses are remembered", len(p.rates))
	}
}

// TestRenewedPolicyGoesOnCounting changes a policy while a visitor is there.
func TestRenewedPolicyGoesOnCounting(t *testing.T) {
	now := time.Now()
	old := New(parse(t, `{"connections":5,"bandwidth":5000}`), nil)
	_, release := old.Enter(Request{Addr: addr("10.0.0.1")}, now)
	p := Renew(old, "", parse(t, `{"connections":1,"bandwidth":9000}`), nil)
	in, _ := old.Bandwidth()
	if in.Rate() != 9000 {
		t.Errorf("what is open has %d bytes a second", in.Rate())
	}
	if d, _ := p.Enter(Request{Addr: addr("10.0.0.2")}, now); d.Rule != RuleConnections {
		t.Errorf("a second visitor: %+v", d)
	}
	release()
	if d, _ := p.Enter(Request{Addr: addr("10.0.0.2")}, now); !d.Allowed {
		t.Errorf("after the first left: %+v", d)
	}
	p = Renew(p, "", parse(t, `{"bandwidth":9000,"shadow":true}`), nil)
	if in.Rate() != 0 {
		t.Error("a policy in shadow mode holds the bandwidth")
	}
	Renew(p, "", parse(t, `{"bandwidth":9000}`), nil).End()
	if in.Rate() != 0 {
		t.Error("a deleted policy holds the bandwidth")
	}
}

func enterAt(p *Policy, now time.Time) (Decision, func()) {
	return p.Enter(Request{Addr: addr("10.0.0.1")}, now)
}

// TestExplainAgreesWithWhatHappens compares both for random requests under random
// policies.
func TestExplainAgreesWithWhatHappens(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	some := func(of ...string) []string {
		var list []string
		for _, s := range of {
			if rng.IntN(4) == 0 {
				list = append(list, s)
			}
		}
		return list
	}
	base := parse(t, `{"basic_auth":[{"name":"ann","hash":"$2a$04$`+"2CPbS4M3sMcGFhKkPIXYZO3g2P2jFvW9rBYPYsC4T0XtQS5U0tkfm"+`"}]}`)
	places := atlas{1: {"CN", "GD"}, 2: {"US", "CA"}}
	for i := range 1000 {
		d := Document{
			Deny: some("10.0.0.0/30", "10.0.0.2", "2001:db8::/64"), Allow: some("10.0.0.0/8", "2001:db8::/32", "10.0.0.3"),
			DenyCountries: some("CN", "US-CA"), AllowCountries: some("CN", "US"), UnknownCountry: []string{"", "allow", "deny"}[rng.IntN(3)],
			Connections: rng.IntN(4), ConnectionsPerAddress: rng.IntN(3), Rate: float64(rng.IntN(3)), Burst: rng.IntN(3), MaxBody: int64(rng.IntN(2) * 100),
		}
		if rng.IntN(4) == 0 {
			d.BasicAuth = base.BasicAuth
		}
		if rng.IntN(3) == 0 {
			d.Hours = &Hours{Zone: []string{"", "Europe/Berlin", "America/New_York"}[rng.IntN(3)], Open: []Window{
				{Days: some(weekdays...), From: fmt.Sprintf("%02d:%02d", rng.IntN(24), rng.IntN(60)), To: fmt.Sprintf("%02d:%02d", rng.IntN(24), rng.IntN(60))},
			}}
		}
		geo := func() Geo { return places }
		if rng.IntN(3) == 0 {
			geo = nil
		}
		p := New(d, geo)
		now := time.Unix(1e9, 0)
		for round := range 12 {
			now = now.Add(time.Duration(rng.IntN(1000)) * time.Millisecond)
			if round%4 == 3 {
				now = now.Add(time.Duration(rng.IntN(24*60)) * time.Minute)
			}
			r := Request{
				Addr: addr([]string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "2001:db8::1", "2001:db8:0:1::2", "::ffff:10.0.0.1"}[rng.IntN(6)]),
				HTTP: rng.IntN(2) == 0, BodySize: int64(rng.IntN(200)) - 1,
			}
			if r.HTTP && rng.IntN(20) == 0 {
				r.HasUser, r.User, r.Password = true, "ann", "guess"
			}
			said, _ := p.Explain(r, now)
			done, release := p.Enter(r, now)
			if said.Allowed != done.Allowed || said.Rule != done.Rule {
				doc, _ := json.Marshal(d)
				t.Fatalf("seed %d, policy %d %s, request %+v: explained %+v, happened %+v", seed, i, doc, r, said, done)
			}
			if stays := p.Keeps(p.Guest(r, now), now); done.Allowed && !stays.Allowed {
				t.Fatalf("seed %d, policy %d: let in, and ended at once by %+v", seed, i, stays)
			}
			if rng.IntN(2) == 0 {
				release()
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"deny":["10.0.0.0/8"],"rate":1.5,"basic_auth":[{"name":"a","hash":"$2a$04$x"}]}`))
	f.Add([]byte(`{"hours":{"zone":"Europe/Berlin","open":[{"days":["mon"],"from":"22:00","to":"06:00"}]},"bandwidth":4096}`))
	f.Add([]byte(`{"allow_countries":["us-ca"],"unknown_country":"allow"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Parse(b)
		if err != nil {
			return
		}
		New(d, nil).standing(netip.MustParseAddr("10.0.0.1"), time.Now())
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(text); err != nil {
			t.Fatalf("%s does not parse again: %v", text, err)
		}
	})
}
