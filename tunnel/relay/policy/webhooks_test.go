package policy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/signature"
	"adit/tunnel/wire"
)

func parsed(t testing.TB, document string) *Policy {
	t.Helper()
	d, err := Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return New(d, nil)
}

const twoHooks = `{"webhooks":[
	{"path":"/hooks/github/","provider":"github","secrets":["the first secret"]},
	{"path":"/hooks/github/inner","provider":"gitlab","secrets":["the other secret"]},
	{"path":"/Hooks/GitHub","provider":"slack","secrets":["the third secret"]}]}`

func TestWhichPathsAreWebhooks(t *testing.T) {
	const hook, inner, none, unclear = "github slack", "gitlab", "", "unclear"
	p := parsed(t, twoHooks)
	for target, want := range map[string]string{
		"/":                              none,
		"*":                              none,
		"/hooks":                         none,
		"/hooks/":                        none,
		"/hooks/githu":                   none,
		"/hooks/github2":                 none,
		"/hooks/github-x/y":              none,
		"/x/hooks/github":                none,
		"/?/hooks/github":                none,
		"/x?path=/hooks/github":          none,
		"/style.css":                     none,
		"/.well-known/x":                 none,
		"/a%20b;v=1/Foo%2Fbar//x":        none,
		"/%E4%BD%A0%E5%A5%BD/%zz/%":      none,
		"/hooks/github":                  hook,
		"/hooks/github/":                 hook,
		"/hooks/github?x=/../..":         hook,
		"/hooks/github/x/y.json":         hook,
		"/hooks/github/a%20b":            hook,
		"/hooks/github//x":               hook,
		"/hooks/github/./x":              hook,
		"/hooks/github/x/../y":           hook,
		"/hooks/github/inner":            inner,
		"/hooks/github/inner/x":          inner,
		"/hooks/github/inner2":           hook,
		"/HOOKS/github":                  unclear, // with another rule's path, as written
		"/hooks/githuB":                  unclear,
		"/hooks//github":                 unclear,
		"//hooks/github":                 unclear,
		"//x/hooks/github":               unclear,
		"/\\x/hooks/github":              unclear,
		"/%2fx/hooks/github":             unclear,
		"/./hooks/github":                unclear,
		"/x/../hooks/github":             unclear,
		"/x/%2e%2e/hooks/github":         unclear,
		"/x/%2E./hooks/github":           unclear,
		"/x/%252e%252e/hooks/github":     unclear,
		"/x/..;/hooks/github":            unclear,
		"/x/..;a=b/hooks/github":         unclear,
		"/x%2Fy/../hooks/github":         unclear,
		"/x%2Fy/%2e%2e/hooks/github":     unclear,
		"/x/y//../../hooks/github":       unclear,
		"/x//../../hooks/github":         unclear,
		"/x\\..\\hooks\\github":          unclear,
		"/hooks%2Fgithub":                unclear,
		"/hooks%5cgithub":                unclear,
		"/hooks%255Cgithub":              unclear,
		"/hooks%c0%afgithub":             unclear,
		"/hook%73/github":                unclear,
		"/hook%2573/github":              unclear,
		"/hooks/github;x":                unclear,
		"/hooks;x/github":                unclear,
		"/hooks/github%00":               unclear,
		"/hooks/github%00x":              unclear,
		"/hooks/github%3Fx":              unclear,
		"/hooks/github%23x":              unclear,
		"/hooks/git%09hub":               unclear,
		"/hooks/github.":                 unclear,
		"/hooks/github%20":               unclear,
		"/hooks./github":                 unclear,
		"/hooks/github/..":               unclear,
		"/hooks/github/../admin":         unclear, // with a signature it would be let in without a password
		"/hooks/github/%2e%2e/admin":     unclear,
		"/hooks/github/..%2fadmin":       unclear,
		"/hooks/github/..%5cadmin":       unclear,
		"/hooks/github/..;/admin":        unclear,
		"/hooks/github/x/..%252f../../x": unclear,
		"/hooks/github/inn%65r":          unclear,
		"/hooks/github/x/../inner":       unclear,
		"/hooks/../github":               unclear, // to an origin that is asked without /hooks
		"/hooks/..":                      none,
		"/hooks/../x":                    none,
		"/hooks/x/../../github":          unclear,
		"/hooks/%2e%2e/github":           unclear,
		"/hooks/..%2fgithub":             unclear,
		"/h%6foks/../github":             unclear,
		"/hooks//x/github":               unclear,
		"/hooks/%5cx/github":             unclear,
		"/hooks/github/../inner":         unclear,
		"/hooks/x//x/github":             none,
		"/" + strings.Repeat("%2525%2e;/.\\..//a.%20", 50): unclear, // too much to be tried
		"/" + strings.Repeat("%61/../", 9):                 none,
	} {
		h, d := p.hook(true, target)
		got := none
		switch {
		case !d.Allowed:
			got = unclear
			if d.Rule != RuleWebhookPath {
				t.Errorf("%s: %+v", target, d)
			}
		case h != nil:
			got = strings.Join(h.providers, " ")
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}

// TestEveryPathOfOneWebhook checks that nothing is uncertain then.
func TestEveryPathOfOneWebhook(t *testing.T) {
	for _, written := range []string{"", "/"} {
		p := parsed(t, fmt.Sprintf(`{"webhooks":[{"path":%q,"provider":"github","secrets":["the first secret"]}]}`, written))
		for _, target := range []string{"/", "*", "/x", "//x/../%2e", "/" + strings.Repeat("%61", 5000)} {
			if h, d := p.hook(true, target); h == nil || !d.Allowed {
				t.Errorf("%q, %.20s: got %+v, %+v", written, target, h, d)
			}
		}
	}
}

// origins interpret a target as known servers do.
var origins = map[string]func(string) (string, bool){
	"net/http": func(target string) (string, bool) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return "", false
		}
		return path.Clean("/" + u.Path), true
	},
	"as it is": func(target string) (string, bool) { p, _, _ := strings.Cut(target, "?"); return p, true },
	"relative to its own address": func(target string) (string, bool) {
		u, err := url.Parse(target)
		if err != nil {
			return "", false
		}
		base := url.URL{Scheme: "http", Host: "localhost", Path: "/"}
		return "/" + strings.TrimPrefix(base.ResolveReference(u).Path, "/"), true
	},
	"cleaned before it is decoded": func(target string) (string, bool) {
		p, _, _ := strings.Cut(target, "?")
		p, err := url.PathUnescape(path.Clean("/" + p))
		return p, err == nil
	},
	"decoded twice": func(target string) (string, bool) {
		p, _, _ := strings.Cut(target, "?")
		for range 2 {
			var err error
			if p, err = url.PathUnescape(p); err != nil {
				return "", false
			}
		}
		return path.Clean("/" + strings.ReplaceAll(p, `\`, "/")), true
	},
	"without parameters": func(target string) (string, bool) {
		p, _, _ := strings.Cut(target, "?")
		var out []string
		for s := range strings.SplitSeq(p, "/") {
			s, _, _ = strings.Cut(s, ";")
			s, err := url.PathUnescape(s)
			if err != nil {
				return "", false
			}
			out = append(out, s)
		}
		return path.Clean("/" + strings.Join(out, "/")), true
	},
	"without case": func(target string) (string, bool) {
		p, _, _ := strings.Cut(target, "?")
		return strings.ToLower(p), true
	},
}

// FuzzPaths compares the decision on a target with how origins interpret it.
func FuzzPaths(f *testing.F) {
	for _, seed := range []string{
		"/hooks/github", "/hooks/github/../x", "/x/%2e%2e/hooks/github", "//hooks/github", "/hooks%2Fgithub", "/hooks/github;x", "/hooks/../github", "/hooks//x/github", "/Hooks/GitHub/x",
		"/x%2Fy/%2e%2e/hooks/github", "/hooks/github/a%20b", "//x/hooks/github", `/x\..\hooks\github`, "/hooks/github%252f..", "/a//../hooks/github",
	} {
		f.Add(seed)
	}
	p := parsed(f, `{"webhooks":[{"path":"/hooks/github","provider":"github","secrets":["the first secret"]}]}`)
	f.Fuzz(func(t *testing.T, target string) {
		if !strings.HasPrefix(target, "/") || strings.ContainsFunc(target, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '#' }) {
			t.Skip("the edge passes no such target on")
		}
		h, d := p.hook(true, target)
		if !d.Allowed {
			return
		}
		for name, read := range origins {
			seen, ok := read(target)
			if !ok {
				continue
			}
			if is := seen == "/hooks/github" || strings.HasPrefix(seen, "/hooks/github/"); is != (h != nil) {
				t.Errorf("%q, which an origin reads %s as %q: it is said to be a webhook's: %v", target, name, seen, h != nil)
			}
			size, led := wire.MatchPath("/hooks", target)
			if !led {
				continue
			}
			if seen, ok = read(wire.StripPath(target, size)); !ok {
				continue
			}
			if is := seen == "/github" || strings.HasPrefix(seen, "/github/"); is != (h != nil) {
				t.Errorf("%q, of which an origin that is asked without /hooks reads %s %q: it is said to be a webhook's: %v", target, name, seen, h != nil)
			}
		}
	})
}

func TestWebhooksThatAreRefused(t *testing.T) {
	for document, field := range map[string]string{
		`{"webhooks":[{"provider":"github"}]}`:                                                                                                    "webhooks[0].secrets",
		`{"webhooks":[{"provider":"nobody","secrets":["long enough"]}]}`:                                                                          "webhooks[0].provider",
		`{"webhooks":[{"path":"hooks","provider":"github","secrets":["long enough"]}]}`:                                                           "webhooks[0].path",
		`{"webhooks":[{"path":"/a/../b","provider":"github","secrets":["long enough"]}]}`:                                                         "webhooks[0].path",
		`{"webhooks":[{"path":"/a%20b","provider":"github","secrets":["long enough"]}]}`:                                                          "webhooks[0].path",
		`{"webhooks":[{"path":"/a/*","provider":"github","secrets":["long enough"]}]}`:                                                            "webhooks[0].path",
		`{"webhooks":[{"path":"/.Adit/x","provider":"github","secrets":["long enough"]}]}`:                                                        "webhooks[0].path",
		`{"webhooks":[{"path":"/.adit","provider":"github","secrets":["long enough"]}]}`:                                                          "webhooks[0].path",
		`{"webhooks":[{"provider":"github","secrets":["short"]}]}`:                                                                                "webhooks[0].secrets[0]",
		`{"webhooks":[{"provider":"github","secrets":["long enough"],"header":"X-Sign"}]}`:                                                        "webhooks[0].header",
		`{"webhooks":[{"provider":"hmac","secrets":["long enough"]}]}`:                                                                            "webhooks[0].header",
		`{"webhooks":[{"provider":"github","secret":"long enough"}]}`:                                                                             "secret",
		`{"webhooks":[{"path":"/a","provider":"github","secrets":["long enough"]},{"path":"/A/","provider":"github","secrets":["long enough"]}]}`: "webhooks[1].path",
	} {
		_, err := Parse([]byte(document))
		var fault *FieldError
		if !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("%s: got %v, want %s at fault", document, err, field)
		}
	}
}

func TestRedactedHasNoWebhookSecrets(t *testing.T) {
	p := parsed(t, twoHooks)
	d := p.Document()
	shown, _ := json.Marshal(d.Redacted())
	if strings.Contains(string(shown), "secret") || !strings.Contains(string(shown), `"/hooks/github"`) {
		t.Errorf("got %s", shown)
	}
	if kept, _ := json.Marshal(d); !strings.Contains(string(kept), "the first secret") {
		t.Errorf("the document itself has lost its secrets: %s", kept)
	}
}

// signedHeader returns the headers with which GitHub signs a body.
func signedHeader(secret, body string) http.Header {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return http.Header{"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))}}
}

// TestWebhookGoesBeforePassword uses a site behind a password with one open path.
func TestWebhookGoesBeforePassword(t *testing.T) {
	now := time.Now()
	const rest = `"deny":["192.0.2.9"],"rate":1,"burst":3,"max_body":10,"basic_auth":[{"name":"ann","password":"secret"}]`
	p := parsed(t, `{`+rest+`,"webhooks":[{"path":"/hook","provider":"github","secrets":["the first secret","the second secret"]}]}`)
	n := byte(0)
	ask := func(target string, r Request) (Decision, Request) {
		if !r.Addr.IsValid() {
			n++
			r.Addr = netip.AddrFrom4([4]byte{198, 51, 100, n})
		}
		r.HTTP, r.Target = true, target
		d, release := p.Enter(r, now)
		release()
		return d, r
	}
	if d, _ := ask("/", Request{}); d.Rule != RuleBasicAuth {
		t.Errorf("another path: %+v", d)
	}
	if d, _ := ask("/hook/../x", Request{User: "ann", Password: "secret", HasUser: true}); d.Rule != RuleWebhookPath {
		t.Errorf("an unclear path: %+v", d)
	}
	if d, _ := ask("/hook", Request{Addr: netip.MustParseAddr("192.0.2.9")}); d.Rule != RuleDeny {
		t.Errorf("an address that is refused: %+v", d)
	}
	if d, _ := ask("/hook", Request{BodySize: 11}); d.Rule != RuleMaxBody {
		t.Errorf("a body that is too large: %+v", d)
	}
	d, r := ask("/hook", Request{User: "ann", Password: "wrong", HasUser: true})
	if !d.Allowed || d.Hook == nil {
		t.Fatalf("a webhook: %+v", d)
	}
	decide := func(header http.Header, body string) (Guest, Decision) {
		signs, read := d.Hook.Read(signature.Request{Header: header}, now)
		if !read.Allowed {
			return Guest{}, read
		}
		g := p.Guest(r, now)
		var decision Decision
		g.Proof, decision = signs.Decide(func(w io.Writer) { io.WriteString(w, body) })
		return g, decision
	}
	if _, got := decide(http.Header{}, "{}"); got.Rule != RuleWebhook {
		t.Errorf("without a signature: %+v", got)
	}
	if _, got := decide(signedHeader("another secret", "{}"), "{}"); got.Rule != RuleWebhook {
		t.Errorf("with a wrong signature: %+v", got)
	}
	g, got := decide(signedHeader("the second secret", "{}"), "{}")
	if !got.Allowed || g.Name() != "" {
		t.Fatalf("with the right signature: %+v, %+v", got, g)
	}

	// What is open is held to the policies that follow.
	for document, want := range map[string]string{
		`{` + rest + `,"webhooks":[{"path":"/hook","provider":"github","secrets":["the second secret"]}]}`:    "",
		`{` + rest + `,"webhooks":[{"path":"/","provider":"github","secrets":["the second secret"]}]}`:        "",
		`{` + rest + `,"webhooks":[{"path":"/hook","provider":"github","secrets":["the first secret"]}]}`:     RuleWebhook,
		`{` + rest + `,"webhooks":[{"path":"/hook","provider":"gitlab","secrets":["the second secret"]}]}`:    RuleWebhook,
		`{` + rest + `,"webhooks":[{"path":"/another","provider":"github","secrets":["the second secret"]}]}`: RuleBasicAuth,
		`{` + rest + `}`: RuleBasicAuth,
		`{"webhooks":[{"path":"/another","provider":"github","secrets":["the second secret"]}]}`: "",
	} {
		if k := parsed(t, document).Keeps(g, now); k.Rule != want {
			t.Errorf("%s: got %+v, want %q", document, k, want)
		}
	}
	if k := p.Keeps(Guest{Addr: r.Addr, Target: "/hook"}, now); k.Rule != RuleWebhook {
		t.Errorf("one that came before there was a webhook: %+v", k)
	}
}

// TestWhoStaysIsReadOnce uses a guest whose path takes long to analyse, and who is
// checked again and again.
func TestWhoStaysIsReadOnce(t *testing.T) {
	const hours, hooks = `"hours":{"open":[{"from":"00:00","to":"24:00"}]}`, `"webhooks":[{"path":"/hooks","provider":"github","secrets":["it's a secret"]}]`
	p := parsed(t, "{"+hours+","+hooks+"}")
	now := time.Now()
	g := Guest{Addr: netip.MustParseAddr("192.0.2.1"), Target: "/" + strings.Repeat(`a%2525252e;x\..//`, 10), Reading: new(Reading)}
	once := testing.AllocsPerRun(1, func() { p.Keeps(Guest{Addr: g.Addr, Target: g.Target}, now) })
	if again := testing.AllocsPerRun(100, func() {
		if d := p.Keeps(g, now); !d.Allowed {
			t.Errorf("the guest is to leave: %+v", d)
		}
	}); again > once/20 {
		t.Errorf("it takes %v allocations each time, and %v without remembering", again, once)
	}
	if d := parsed(t, strings.Replace("{"+hooks+"}", "/hooks", "/", 1)).Keeps(g, now); d.Rule != RuleWebhook {
		t.Errorf("by another policy, in which every path is a webhook's: %+v", d)
	}
	if d := p.Keeps(g, now); !d.Allowed {
		t.Errorf("by the first again: %+v", d)
	}
}

// TestWebhooksAreForHTTP checks that other types are closed.
func TestWebhooksAreForHTTP(t *testing.T) {
	p, now := parsed(t, twoHooks), time.Now()
	addr := netip.MustParseAddr("192.0.2.1")
	if d, _ := p.Enter(Request{Addr: addr}, now); d.Rule != RuleWebhook {
		t.Errorf("a connection: %+v", d)
	}
	if d := p.Keeps(Guest{Addr: addr}, now); d.Rule != RuleWebhook {
		t.Errorf("one that is open: %+v", d)
	}
	if d, _ := p.Explain(Request{Addr: addr}, now); d.Rule != RuleWebhook {
		t.Errorf("explained: %+v", d)
	}
	if d, _ := p.Enter(Request{Addr: addr, HTTP: true, Target: "/"}, now); !d.Allowed || d.Hook != nil {
		t.Errorf("a path without a webhook: %+v", d)
	}
}

func TestWebhooksAreExplained(t *testing.T) {
	p, now := parsed(t, `{"basic_auth":[{"name":"ann","password":"secret"}],"webhooks":[{"path":"/hook","provider":"github","secrets":["the first secret"]}]}`), time.Now()
	for _, c := range []struct {
		r    Request
		rule string
		said string
	}{
		{Request{Target: "/"}, RuleBasicAuth, "the path does not belong to a webhook"},
		{Request{Target: "/hook/x"}, RuleWebhook, "a request to /hook must be signed by github"},
		{Request{Target: "/hook/x", Signed: true}, "", "signed by github, for /hook"},
		{Request{Target: "/", Signed: true}, RuleBasicAuth, "the path does not belong to a webhook"},
		{Request{Target: "/x/../hook", Signed: true}, RuleWebhookPath, "origins differ in what they take the path for"},
	} {
		c.r.Addr, c.r.HTTP = netip.MustParseAddr("192.0.2.1"), true
		d, steps := p.Explain(c.r, now)
		if d.Rule != c.rule || len(steps) == 0 || steps[0].Detail != c.said {
			t.Errorf("%+v: got %+v, %+v", c.r, d, steps)
		}
	}
}

func BenchmarkEnterWithoutWebhooks(b *testing.B) {
	p, now := parsed(b, `{"deny":["192.0.2.9"]}`), time.Now()
	r := Request{Addr: netip.MustParseAddr("192.0.2.1"), HTTP: true, Target: "/hooks/github"}
	b.ReportAllocs()
	for b.Loop() {
		_, release := p.Enter(r, now)
		release()
	}
}

// TestWebhooksOfNewerVersions reads what a newer node has stored. A provider that is
// unknown here lets nobody in at its path, and does not affect other paths.
func TestWebhooksOfNewerVersions(t *testing.T) {
	now := time.Now()
	const tomorrow, known = `{"path":"/hook","provider":"tomorrow","secrets":["the first secret"]}`, `{"path":"/hook","provider":"github","secrets":["the first secret"]}`
	stored := func(hooks string) *Policy {
		d, err := ReadStored([]byte(`[["webhooks"],{"webhooks":[` + hooks + `]}]`))
		if err != nil {
			t.Fatal(err)
		}
		return New(d, nil)
	}
	addr := netip.MustParseAddr("192.0.2.1")
	for hooks, wantSigned := range map[string]bool{tomorrow: false, tomorrow + "," + known: true} {
		p := stored(hooks)
		if d, _ := p.Enter(Request{Addr: addr, HTTP: true, Target: "/other"}, now); !d.Allowed || d.Hook != nil {
			t.Errorf("%s: another path: %+v", hooks, d)
		}
		d, _ := p.Enter(Request{Addr: addr, HTTP: true, Target: "/hook/x"}, now)
		if d.Hook == nil {
			t.Fatalf("%s: %+v", hooks, d)
		}
		for what, header := range map[string]http.Header{"nothing": {}, "a token": {"X-Tomorrow": {"the first secret"}}} {
			if _, d := d.Hook.Read(signature.Request{Header: header}, now); d.Rule != RuleWebhook || !strings.Contains(d.Detail, `"tomorrow"`) {
				t.Errorf("%s: with %s: %+v", hooks, what, d)
			}
		}
		if _, d := d.Hook.Read(signature.Request{Header: signedHeader("the first secret", "{}")}, now); d.Allowed != wantSigned {
			t.Errorf("%s: signed: %+v", hooks, d)
		}
		if k := p.Keeps(Guest{Addr: addr, Target: "/hook/x"}, now); k.Rule != RuleWebhook {
			t.Errorf("%s: one that is open: %+v", hooks, k)
		}
	}
	if _, err := Parse([]byte(`{"webhooks":[` + tomorrow + `]}`)); err == nil {
		t.Error("it can be set here")
	}
}
