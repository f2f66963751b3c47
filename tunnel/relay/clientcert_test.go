package relay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2/hpack"

	"adit/internal/certtest"
	"adit/internal/require"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// certified returns a policy that lets in those with a certificate from an authority.
func certified(authorities string, names ...string) string {
	doc, _ := json.Marshal(policy.Document{ClientCertificates: &policy.ClientCertificates{Authorities: authorities, Names: names}})
	return string(doc)
}

// named answers with the headers that say who the visitor is, and with everything that a
// stranger might say instead.
func named(w http.ResponseWriter, r *http.Request) {
	var told []string
	for name, values := range r.Header {
		if plain := strings.ReplaceAll(name, "_", "-"); strings.HasPrefix(plain, "X-Forwarded-") && !slices.Contains([]string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}, plain) {
			told = append(told, strings.TrimPrefix(name, "X-Forwarded-")+"="+strings.Join(values, ","))
		}
	}
	slices.Sort(told)
	fmt.Fprintf(w, "who: %s", strings.Join(told, " "))
}

// presenter presents a certificate whenever it is asked for one, whatever authorities are
// accepted. Without a certificate, it presents none. It counts how often it was asked.
type presenter struct {
	certificate tls.Certificate
	asked       atomic.Int32
	authorities atomic.Int32 // that were named last
}

func (p *presenter) present(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	p.asked.Add(1)
	p.authorities.Store(int32(len(info.AcceptableCAs)))
	return &p.certificate, nil
}

// presenting returns visitors of each version of HTTP that present a certificate.
func (s *site) presenting(t *testing.T, certificate tls.Certificate) (map[string]*http.Client, *presenter) {
	t.Helper()
	p := &presenter{certificate: certificate}
	all := map[string]*http.Client{"http/1": s.testRelay.visitor(t), "http/2": s.testRelay.visitor(t), "http/3": s.visitor3(t)}
	for version, c := range all {
		switch tr := c.Transport.(type) {
		case *http.Transport:
			tr.ForceAttemptHTTP2 = version == "http/2"
			tr.TLSClientConfig.GetClientCertificate = p.present
		case *http3.Transport:
			tr.TLSClientConfig.GetClientCertificate = p.present
		}
	}
	return all, p
}

// ask asks for a page, and returns the status and the body, or the version of HTTP if
// it is not the one wanted.
func ask(t *testing.T, c *http.Client, url, version string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header[header[i]] = []string{header[i+1]}
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatalf("%s: %v", version, err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if got := fmt.Sprintf("http/%d", resp.ProtoMajor); version != "" && got != version {
		t.Fatalf("by %s, want %s", got, version)
	}
	return resp.StatusCode, string(body)
}

func TestClientCertificatesLetIn(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(named))
	home := certtest.New(t, "Home")
	mail := func(address string) certtest.Change {
		return func(c *x509.Certificate) { c.EmailAddresses = []string{address} }
	}
	alone := func(c tls.Certificate) tls.Certificate { c.Certificate = c.Certificate[:1]; return c }
	s.setPolicy(t, "shop", certified(home.PEM(), "Ann", "@example.com"))
	for name, c := range map[string]struct {
		certificate tls.Certificate
		rule        string
		who         string // as the log has it
		body        string
	}{
		"named":                {home.Client(t, "Ann"), "", "Ann", "who: User=Ann"},
		"by its address":       {home.Below(t, "Phones").Client(t, "", mail("x@example.com")), "", "x@example.com", "who: Email=x@example.com User=x@example.com"},
		"none":                 {tls.Certificate{}, policy.RuleCertificate, "", "presented none"},
		"another authority's":  {certtest.New(t, "Home").Client(t, "Ann"), policy.RuleCertificateIssuer, "", "not from an authority"},
		"its own issuer":       {certtest.Self(t, "Ann"), policy.RuleCertificateIssuer, "", "not from an authority"},
		"for servers":          {home.Client(t, "Ann", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), policy.RuleCertificateIssuer, "", "not a client certificate"},
		"out of date":          {home.Client(t, "Ann", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), policy.RuleCertificateTime, "", "has expired"},
		"somebody else":        {home.Client(t, "Eve"), policy.RuleCertificateWho, "", "name in your certificate"},
		"a link of it missing": {alone(home.Below(t, "Phones").Client(t, "Ann")), policy.RuleCertificateIssuer, "", "not from an authority"},
	} {
		clients, asked := s.presenting(t, c.certificate)
		for version, visitor := range clients {
			status, body := ask(t, visitor, s.https, version, "X-Forwarded-User", "admin", "X_Forwarded_User", "admin", "X-Forwarded-Groups", "admins", "X-Forwarded-Client-Cert", "x")
			want := 403
			if c.rule == "" {
				want = 200
			}
			if status != want || !strings.Contains(body, c.body) || c.rule == "" && body != c.body {
				t.Errorf("%s by %s: status %d, %s", name, version, status, body)
			}
			recorded(t, s.Relay, name, func(e wire.Access) bool {
				return e.Status == want && e.Refused == c.rule && e.User == c.who && e.Host == "shop.relay.test"
			})
		}
		if asked.asked.Load() != 3 || asked.authorities.Load() != 1 {
			t.Errorf("%s: asked %d times, and told of %d authorities", name, asked.asked.Load(), asked.authorities.Load())
		}
	}
	// By http nobody can present one.
	if status, body := get(t, s.visitor, s.http); status != 403 || !strings.Contains(body, "presented none") {
		t.Errorf("by http: status %d, %s", status, body)
	}
	// In shadow mode all are let in, and it is recorded what would have been.
	s.setPolicy(t, "shop", strings.TrimSuffix(certified(home.PEM()), "}")+`,"shadow":true}`)
	for name, certificate := range map[string]tls.Certificate{"": home.Client(t, "Ann"), "shadow:" + policy.RuleCertificateIssuer: certtest.Self(t, "Ann"), "shadow:" + policy.RuleCertificate: {}} {
		clients, _ := s.presenting(t, certificate)
		for version, visitor := range clients {
			if status, _ := ask(t, visitor, s.https, version); status != 200 {
				t.Errorf("%s by %s: status %d", name, version, status)
			}
			recorded(t, s.Relay, name, func(e wire.Access) bool { return e.Status == 200 && e.Refused == name })
		}
	}
}

// TestCertificatesAreAskedForWhereTheyLetIn counts for which names a visitor is asked.
func TestCertificatesAreAskedForWhereTheyLetIn(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("served"))
	other := s.agent.mustClaim("other", wire.Claim{Type: wire.TypeHTTPS, Domain: "other"}, s.agent.origins[1]).PublicURL
	below := s.agent.mustClaim("below", wire.Claim{Type: wire.TypeHTTPS, Domain: "*.wild"}, s.agent.origins[1]).PublicURL
	below = strings.Replace(below, "*", "a", 1)
	home := certtest.New(t, "Home")
	ann := home.Client(t, "Ann")
	count := func(what, url string, status int, asked int32) {
		t.Helper()
		clients, p := s.presenting(t, ann)
		for version, c := range clients {
			before := p.asked.Load()
			if got, body := ask(t, c, url, version); got != status {
				t.Errorf("%s by %s: status %d, %s", what, version, got, body)
			}
			if got := p.asked.Load() - before; got != asked {
				t.Errorf("%s by %s: asked %d times, want %d", what, version, got, asked)
			}
		}
	}
	count("without a policy", s.https, 200, 0)
	s.setPolicy(t, "shop", `{"basic_auth":[{"name":"ann","password":"secret"}]}`)
	count("with another policy", s.https, 401, 0)
	s.setPolicy(t, "shop", certified(home.PEM()))
	count("with it", s.https, 200, 1)
	count("at another name", other, 200, 0)
	count("at one of all names", below, 200, 0)
	s.setPolicy(t, "*.wild", certified(home.PEM()))
	count("at one of all names, with it", below, 200, 1)
	if err := s.operator().DeletePolicy(t.Context(), "shop", nil); err != nil {
		t.Fatal(err)
	}
	count("without it again", s.https, 200, 0)
}

// TestConnectionsThatWereNotAsked sends requests on connections that were opened before
// the policy was set, or for another name.
func TestConnectionsThatWereNotAsked(t *testing.T) {
	cfg := testConfig(t.TempDir())
	wildcardFiles(t, &cfg, "*.relay.test") // one certificate for all, as browsers want it for that
	s := startSite(t, cfg, text("served"))
	other := s.agent.mustClaim("other", wire.Claim{Type: wire.TypeHTTPS, Domain: "other"}, s.agent.origins[1]).PublicURL
	home := certtest.New(t, "Home")
	clients, asked := s.presenting(t, home.Client(t, "Ann"))
	for _, c := range clients {
		switch tr := c.Transport.(type) {
		case *http.Transport:
			tr.TLSClientConfig.InsecureSkipVerify = true
		case *http3.Transport:
			tr.TLSClientConfig.InsecureSkipVerify = true
		}
	}
	for version, c := range clients {
		if status, _ := ask(t, c, s.https, version); status != 200 {
			t.Fatalf("%s: status %d without a policy", version, status)
		}
	}
	s.setPolicy(t, "shop", certified(home.PEM()))
	for version, c := range clients {
		if status, body := ask(t, c, s.https, version); status != 421 || !strings.Contains(body, "when a connection is opened") {
			t.Errorf("%s by a connection from before: status %d, %s", version, status, body)
		}
		recorded(t, s.Relay, version, func(e wire.Access) bool { return e.Refused == policy.RuleCertificateUnasked })
		eventually(t, version+" asks by another connection", func() bool {
			resp, err := c.Get(s.https) // by HTTP/3 it may meet the end of the one before
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			return resp.StatusCode == 200
		})
	}
	if got := asked.asked.Load(); got != 3 {
		t.Errorf("asked %d times", got)
	}
	// With another name's connection: it goes on to serve its own.
	for version, c := range clients {
		if status, _ := ask(t, c, other, version); status != 200 {
			t.Fatalf("%s: status %d of the other name", version, status)
		}
		before := asked.asked.Load()
		for _, want := range []int{421, 200} {
			url, host := other, "shop.relay.test"
			if want == 200 {
				host = "other.relay.test"
			}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			req.Host = host
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want || resp.Close {
				t.Errorf("%s by the connection of another name: status %d of %s, and it is closed: %v", version, resp.StatusCode, host, resp.Close)
			}
		}
		if asked.asked.Load() != before {
			t.Errorf("%s has opened another connection", version)
		}
	}
	// A certificate that was presented to one name is not for another.
	s.setPolicy(t, "other", certified(home.PEM()))
	for host, want := range map[string]string{"shop": "200", "other": "421"} {
		conn := dialHTTP2By(t, s, &tls.Config{ServerName: "shop.relay.test", InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{home.Client(t, "Ann")}})
		conn.headers(1, true, []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: host + ".relay.test"}}...)
		if got := conn.answer(1); got != want {
			t.Errorf("%s by a connection of shop: %s, want %s", host, got, want)
		}
		conn.Close()
	}
	// Whoever names no host is told that a certificate is wanted: another connection
	// would be no better.
	conn := dialHTTP2By(t, s, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{home.Client(t, "Ann")}})
	conn.headers(1, true, []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: "shop.relay.test"}}...)
	if got := conn.answer(1); got != "403" {
		t.Errorf("without a name in the handshake: %s", got)
	}
	conn.Close()
}

// TestOpenVisitsEndWithTheirCertificates opens WebSockets whose certificates are then no
// longer accepted.
func TestOpenVisitsEndWithTheirCertificates(t *testing.T) {
	t.Parallel() // most of it is waiting
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Errorf("origin: %v", err)
			return
		}
		defer c.CloseNow()
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	}))
	home, short := certtest.New(t, "Home"), time.Now().Add(4*time.Second)
	s.setPolicy(t, "shop", certified(home.PEM()))
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	dial := func(certificate tls.Certificate) *websocket.Conn {
		t.Helper()
		clients, _ := s.presenting(t, certificate)
		conn, _, err := websocket.Dial(ctx, s.https, &websocket.DialOptions{HTTPClient: clients["http/1"]})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.CloseNow() })
		return conn
	}
	echoes := func(conn *websocket.Conn) bool {
		if conn.Write(ctx, websocket.MessageText, []byte("x")) != nil {
			return false
		}
		_, _, err := conn.Read(ctx)
		return err == nil
	}
	ann, eve := dial(home.Client(t, "Ann")), dial(home.Client(t, "Eve"))
	soon := dial(home.Client(t, "Soon", func(c *x509.Certificate) { c.NotAfter = short }))
	if !echoes(ann) || !echoes(eve) || !echoes(soon) {
		t.Fatal("no echo")
	}
	s.setPolicy(t, "shop", certified(home.PEM(), "Ann", "Soon"))
	if _, _, err := eve.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("who is let in no more: %v", err)
	}
	if _, _, err := soon.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("whose certificate has run out: %v", err)
	}
	if time.Now().Before(short.Truncate(time.Second)) {
		t.Error("it has ended before its certificate ran out")
	}
	if !echoes(ann) {
		t.Error("who is let in is ended, too")
	}
	s.setPolicy(t, "shop", certified(certtest.New(t, "Home").PEM()))
	if _, _, err := ann.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("whose authority was taken out: %v", err)
	}
}

// TestCertificatesAtAnotherNode sends a visitor through one node to a client at another,
// which has to learn about the policy.
func TestCertificatesAtAnotherNode(t *testing.T) {
	c := startNodes(t, 2)
	s := &site{testRelay: c.all[0]}
	a := connect(t, s.at(c.clientEverywhere("shop")), "i1")
	a.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, startOrigin(t, http.HandlerFunc(named)))
	home := certtest.New(t, "Home")
	s.setPolicy(t, "shop", certified(home.PEM()))
	for i, r := range c.all {
		eventually(t, "every node has the tunnel and its policy", func() bool {
			return len(r.edge.Endpoints()) == 1 && r.policies.Get(claims.TargetDomain("shop.relay.test")) != nil
		})
		at := &site{testRelay: r}
		_, port, _ := net.SplitHostPort(r.edge.HTTPSAddr().String())
		for want, certificate := range map[int]tls.Certificate{200: home.Client(t, "Ann"), 403: certtest.Self(t, "Ann")} {
			clients, _ := at.presenting(t, certificate)
			visitor := clients["http/2"]
			visitor.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, r.edge.HTTPSAddr().String())
			}
			if status, body := ask(t, visitor, "https://shop.relay.test:"+port+"/", "http/2"); status != want || want == 200 && body != "who: User=Ann" {
				t.Errorf("at node %d: status %d, %s, want %d", i, status, body, want)
			}
		}
	}
}

// TestMoreThanMayBePresented presents certificates that are expensive to keep or verify.
func TestMoreThanMayBePresented(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("served"))
	home := certtest.New(t, "Home")
	s.setPolicy(t, "shop", certified(home.PEM()))
	at := home
	for range policy.MaxPresented {
		at = at.Below(t, "More")
	}
	many := func(n int) certtest.Change {
		return func(c *x509.Certificate) {
			for i := range n {
				c.DNSNames = append(c.DNSNames, fmt.Sprintf("a-name-of-some-length-%d.example.com", i))
			}
		}
	}
	for name, certificate := range map[string]tls.Certificate{
		"a long chain": at.Client(t, "Ann"), "a long certificate": home.Client(t, "Ann", many(1000)), "a longer one": home.Client(t, "Ann", many(3000)),
	} {
		clients, _ := s.presenting(t, certificate)
		for version, c := range clients {
			resp, err := c.Get(s.https)
			if err == nil {
				resp.Body.Close()
				t.Errorf("%s by %s: status %d", name, version, resp.StatusCode)
			}
		}
	}
	clients, _ := s.presenting(t, home.Client(t, "Ann", many(200)))
	for version, c := range clients {
		if status, body := ask(t, c, s.https, version); status != 200 {
			t.Errorf("a certificate of 200 names by %s: status %d, %s", version, status, body)
		}
	}
}

// TestCertificatesOfOpenSSL makes and presents certificates with other programs.
func TestCertificatesOfOpenSSL(t *testing.T) {
	openssl, curl := require.Tool(t, "openssl"), require.Tool(t, "curl")
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(named))
	dir := t.TempDir()
	run := func(in string, program string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(in)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	makes := func(args ...string) {
		t.Helper()
		if out, err := run("", openssl, args...); err != nil {
			t.Fatalf("openssl %v: %v: %s", args, err, out)
		}
	}
	const ec = "ec_paramgen_curve:P-256"
	for _, ca := range []string{"home", "other"} {
		makes("req", "-x509", "-newkey", "ec", "-pkeyopt", ec, "-nodes", "-days", "365", "-subj", "/CN="+ca, "-keyout", ca+".key", "-out", ca+".crt")
		for kind, key := range map[string][]string{"ec": {"ec", "-pkeyopt", ec}, "rsa": {"rsa:2048"}, "ed25519": {"ed25519"}} {
			name := ca + "-" + kind
			args := []string{"req", "-x509", "-nodes", "-days", "365", "-subj", "/CN=" + kind + "/O=Phones", "-CA", ca + ".crt", "-CAkey", ca + ".key"}
			args = append(args, "-addext", "extendedKeyUsage=clientAuth", "-addext", "basicConstraints=critical,CA:FALSE")
			makes(append(append(args, "-keyout", name+".key", "-out", name+".crt", "-newkey"), key...)...)
		}
	}
	authority, err := os.ReadFile(filepath.Join(dir, "home.crt"))
	if err != nil {
		t.Fatal(err)
	}
	s.setPolicy(t, "shop", certified(string(authority)))
	_, port, _ := net.SplitHostPort(s.edge.HTTPSAddr().String())
	for _, name := range []string{"home-ec", "home-rsa", "home-ed25519", "other-ec", "other-rsa", ""} {
		ca, kind, _ := strings.Cut(name, "-")
		var own []string
		if name != "" {
			own = []string{"--cert", name + ".crt", "--key", name + ".key"}
		}
		for _, version := range [][]string{{"--http1.1"}, {"--http2"}, {"--http2", "--tls-max", "1.2"}} {
			out, err := run("", curl, append(slices.Concat(own, version), "-sS", "-w", "\n%{http_code}", "--cacert", s.CAFile(), "--resolve", "shop.relay.test:"+port+":127.0.0.1", "https://shop.relay.test:"+port+"/")...)
			want := "who: User=" + kind + "\n200"
			if ca != "home" {
				want = "\n403"
			}
			if err != nil || !strings.HasSuffix(out, want) {
				t.Errorf("curl %v with %q: %v, %s", version, name, err, out)
			}
		}
	}
	// So it is in the document.
	document, err := os.ReadFile("../../docs/relay/client-certificates.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), "```sh\n")
	script, rest, _ := strings.Cut(rest, "```")
	script, _, _ = strings.Cut(script, "echo '{}'")
	_, rest, _ = strings.Cut(rest, "```bash\n")
	visits, _, ok := strings.Cut(rest, "```")
	const shown = "https://shop.tunnel.example.com"
	if !ok || strings.Count(visits, shown) != 1 {
		t.Fatalf("the document has %q and %q", script, visits)
	}
	if out, err := run("", require.Tool(t, "bash"), "-euc", script); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	made, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	s.setPolicy(t, "shop", certified(string(made)))
	visits = strings.Replace(visits, shown, fmt.Sprintf("--noproxy '*' -s --cacert %s --resolve shop.relay.test:%s:127.0.0.1 https://shop.relay.test:%s", s.CAFile(), port, port), 1)
	if out, err := run("", "bash", "-euc", visits); err != nil || !strings.Contains(out, "who: User=phone") {
		t.Errorf("%s: %v: %s", visits, err, out)
	}
	s.setPolicy(t, "shop", certified(string(authority)))
	// s_client shows whose certificates are wanted, and takes up a session.
	client := func(more ...string) string {
		out, err := run("GET / HTTP/1.1\r\nHost: shop.relay.test\r\nConnection: close\r\n\r\n", openssl, append([]string{"s_client", "-connect", "127.0.0.1:" + port, "-servername", "shop.relay.test", "-CAfile", s.CAFile(), "-ign_eof"}, more...)...)
		if err != nil {
			t.Fatalf("openssl s_client %v: %v: %s", more, err, out)
		}
		return out
	}
	if out := client("-cert", "home-ec.crt", "-key", "home-ec.key", "-sess_out", "session"); !strings.Contains(out, "200 OK") || !strings.Contains(out, "Acceptable client certificate CA names\nCN = home\n") {
		t.Errorf("s_client: %s", out)
	}
	if out := client("-sess_in", "session"); !strings.Contains(out, "200 OK") || !strings.Contains(out, "Reused") {
		t.Errorf("s_client, taken up again: %s", out)
	}
	s.setPolicy(t, "shop", certified(certtest.New(t, "Home").PEM()))
	if out := client("-sess_in", "session"); !strings.Contains(out, "403 Forbidden") || strings.Contains(out, "Reused") {
		t.Errorf("s_client, asked again when its authority was taken out: %s", out)
	}
}
