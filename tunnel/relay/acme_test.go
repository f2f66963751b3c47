package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/nats-io/nats-server/v2/server"

	"adit/internal/freeport"
	"adit/internal/require"
	"adit/tunnel/relay/certs"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/console"
	"adit/tunnel/wire"
)

// acmeLab is an authority that asks a relay's own ports, and the DNS that it
// and the relay see.
type acmeLab struct {
	dir, program, ca string // ca: file to trust the directory by
	cfg              config.Config
	zone             *testZone
	directory        string
	config           string
	stop             func()
}

var pebbleProgram = sync.OnceValues(func() (string, error) { return buildTool("github.com/letsencrypt/pebble/v2/cmd/pebble") })

// oneLab is held by the current lab: certmagic keeps a process's challenges and renewals
// by name, and all labs use the same names.
var oneLab sync.Mutex

// newACMELab creates a lab once those of concurrent tests have ended.
func newACMELab(tb testing.TB, challenges ...string) *acmeLab {
	tb.Helper()
	if testing.Short() {
		tb.Skip("an authority is built and run")
	}
	require.Tool(tb, "go")
	program, err := pebbleProgram()
	if err != nil {
		require.Missing(tb, "Pebble cannot be built: %v", err)
	}
	oneLab.Lock()
	tb.Cleanup(oneLab.Unlock)
	l := &acmeLab{dir: tb.TempDir(), program: program, cfg: testConfig(tb.TempDir()), zone: startZone(tb, "relay.test.")}
	l.cfg.EdgeHTTPListen, l.cfg.EdgeHTTPSListen = freeport.Loopback(tb), freeport.Loopback(tb)
	l.cfg.Limits.HeaderTime = "30s" // a handshake waits for three quarters of it
	api := freeport.Loopback(tb)
	l.directory = "https://" + api + "/dir"
	certFile, keyFile := l.serverCertificate(tb)
	l.cfg.ACME = &config.ACME{Directory: l.directory, CA: l.ca, Challenges: challenges}
	port := func(addr string) int { _, p, _ := net.SplitHostPort(addr); n, _ := net.LookupPort("tcp", p); return n }
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": api, "managementListenAddress": "", "certificate": certFile, "privateKey": keyFile,
		"httpPort": port(l.cfg.EdgeHTTPListen), "tlsPort": port(l.cfg.EdgeHTTPSListen),
		"ocspResponderURL": "", "externalAccountBindingRequired": false,
		"profiles": map[string]any{"default": map[string]any{"description": "all", "validityPeriod": 3600}},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	l.config = filepath.Join(l.dir, "pebble.json")
	if err := os.WriteFile(l.config, config, 0o600); err != nil {
		tb.Fatal(err)
	}
	return l
}

// serverCertificate makes the certificate of the directory itself.
func (l *acmeLab) serverCertificate(tb testing.TB) (certFile, keyFile string) {
	tb.Helper()
	ca, err := certs.NewLocalAuthority("directory")
	if err != nil {
		tb.Fatal(err)
	}
	local, err := certs.NewLocal(ca, func(name string) string { return name })
	if err != nil {
		tb.Fatal(err)
	}
	leaf, err := local.Get(&tls.ClientHelloInfo{ServerName: "127.0.0.1"})
	if err != nil {
		tb.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		tb.Fatal(err)
	}
	l.ca = filepath.Join(l.dir, "ca.pem")
	certFile, keyFile = filepath.Join(l.dir, "cert.pem"), filepath.Join(l.dir, "key.pem")
	for name, data := range map[string][]byte{
		l.ca: local.CA(), keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		certFile: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}),
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return certFile, keyFile
}

// start runs the authority until the returned function or the end of the test.
func (l *acmeLab) start(tb testing.TB) {
	tb.Helper()
	log, err := os.Create(filepath.Join(l.dir, "pebble.log"))
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, l.program, "-config", l.config, "-strict", "-dnsserver", l.zone.addr)
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=5", "PEBBLE_AUTHZREUSE=0")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	var once sync.Once
	l.stop = func() {
		once.Do(func() { cancel(); cmd.Wait(); log.Close() })
	}
	tb.Cleanup(l.stop)
	tb.Cleanup(func() {
		if tb.Failed() {
			l.stop()
			tb.Logf("the authority's log:\n%s", l.log())
		}
	})
	eventually(tb, "the authority listens", func() bool {
		c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(l.directory, "https://"), "/dir"))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (l *acmeLab) log() string {
	text, _ := os.ReadFile(filepath.Join(l.dir, "pebble.log"))
	return string(text)
}

// certificate returns the certificate that visitors of a name see.
func certificate(r *testRelay, name string) (*x509.Certificate, error) {
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", r.Addrs().HTTPS, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0], nil
}

func mustCertificate(tb testing.TB, r *testRelay, name string) *x509.Certificate {
	tb.Helper()
	cert, err := certificate(r, name)
	if err != nil {
		tb.Fatalf("visit %s: %v", name, err)
	}
	if err := cert.VerifyHostname(name); err != nil || !strings.HasPrefix(cert.Issuer.CommonName, "Pebble") {
		tb.Fatalf("visit %s: got a certificate of %v by %q: %v", name, cert.DNSNames, cert.Issuer.CommonName, err)
	}
	return cert
}

func (r *testRelay) serveHTTPS(tb testing.TB, names ...string) {
	tb.Helper()
	a := connect(tb, r.client(tb, "acme"), "i1")
	for _, name := range names {
		a.mustClaim("k-"+name, wire.Claim{Type: wire.TypeHTTPS, Domain: name}, startOrigin(tb, text(name)))
	}
}

func TestACMEChallenges(t *testing.T) {
	t.Parallel() // most of it is waiting
	for _, challenge := range []string{"http-01", "tls-alpn-01"} {
		t.Run(challenge, func(t *testing.T) {
			l := newACMELab(t, challenge)
			l.start(t)
			r := startRelay(t, l.cfg)
			r.serveHTTPS(t, "shop")
			first := mustCertificate(t, r, "shop.relay.test")
			if c := domainOf(t, r, "shop.relay.test").Certificate; c.Source != console.CertificateACME || c.NotAfter == nil || !c.NotAfter.Equal(first.NotAfter) || c.Issuer == "" {
				t.Errorf("the console tells of %+v, want until %v", c, first.NotAfter)
			}
			if got := metric(t, r, `adit_relay_certificate_end_time_seconds{source="acme"}`); got != float64(first.NotAfter.Unix()) {
				t.Errorf("the certificate ends at %v by the figures, want %d", got, first.NotAfter.Unix())
			}
			if _, err := certificate(r, "other.relay.test"); err == nil {
				t.Error("a name that nobody has got a certificate")
			}
			if n := strings.Count(l.log(), "other.relay.test"); n != 0 {
				t.Error("the authority was asked for a name that nobody has")
			}
			// From the store, and without the authority.
			l.stop()
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			again := startRelay(t, l.cfg)
			if got := mustCertificate(t, again, "shop.relay.test"); got.SerialNumber.Cmp(first.SerialNumber) != 0 {
				t.Error("after a restart the certificate is another")
			}
		})
	}
}

func TestACMEWildcardByDNS(t *testing.T) {
	t.Parallel() // most of it is waiting
	l := newACMELab(t, "dns-01")
	l.cfg.ACME.Wildcard = true
	l.cfg.ACME.DNS = config.ACMEDNS{
		Provider: "rfc2136", Server: l.zone.addr, Resolvers: []string{l.zone.addr},
		Key: "adit", Secret: config.Secret(zoneSecret), Algorithm: "hmac-sha512",
	}
	l.start(t)
	r := startRelay(t, l.cfg)
	r.serveHTTPS(t, "shop", "blog")
	first := mustCertificate(t, r, "shop.relay.test")
	second := mustCertificate(t, r, "blog.relay.test")
	if first.SerialNumber.Cmp(second.SerialNumber) != 0 || first.DNSNames[0] != "*.relay.test" {
		t.Errorf("got certificates of %v and %v, want one wildcard", first.DNSNames, second.DNSNames)
	}
	if l.zone.updates() < 2 {
		t.Errorf("%d updates of the zone, want a record made and removed", l.zone.updates())
	}
	if left := l.zone.texts("_acme-challenge.relay.test."); len(left) != 0 {
		t.Errorf("records are left: %v", left)
	}
}

// hurried returns the options of a relay that renews seconds after it got a certificate,
// when 999 thousandths of the certificate's hour are left.
func hurried(cfg config.Config, log *lockedBuffer) Options {
	return Options{
		Config: cfg, Log: slog.New(slog.NewTextHandler(log, nil)),
		certs: func(c *certs.Config) {
			c.Retry, c.Check, c.RenewAt, c.Lookup = time.Second, 200*time.Millisecond, 0.999, loopback
		},
	}
}

// loopback resolves every name to a loopback address.
func loopback(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

func TestACMERenewsAndServesTheOldOneWhileTheDirectoryIsDown(t *testing.T) {
	t.Parallel() // most of it is waiting
	l := newACMELab(t, "http-01")
	l.start(t)
	var log lockedBuffer
	r := startRelayWith(t, hurried(l.cfg, &log))
	r.serveHTTPS(t, "shop")
	first := mustCertificate(t, r, "shop.relay.test")
	eventually(t, "the certificate is renewed", func() bool {
		return mustCertificate(t, r, "shop.relay.test").SerialNumber.Cmp(first.SerialNumber) != 0
	})
	l.stop()
	eventually(t, "a renewal fails", func() bool { return strings.Contains(log.String(), "not renewed yet") })
	mustCertificate(t, r, "shop.relay.test")
	if n := strings.Count(log.String(), "not renewed yet"); n != 1 {
		t.Errorf("the failure was logged %d times, want once", n)
	}
}

func TestACMEDirectoryDownAtFirst(t *testing.T) {
	t.Parallel() // most of it is waiting
	l := newACMELab(t, "http-01")
	var log lockedBuffer
	opts := hurried(l.cfg, &log)
	opts.certs = func(c *certs.Config) { c.Retry, c.Lookup = 3*time.Second, loopback }
	r := startRelayWith(t, opts) // and no authority
	first := time.Now()          // the certificate is asked for from the claim on
	r.serveHTTPS(t, "shop")
	start := time.Now()
	for range 5 {
		if cert, err := certificate(r, "shop.relay.test"); err == nil {
			t.Errorf("got a certificate of %v without an authority", cert.DNSNames)
		}
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("the handshakes hung for %v", took)
	}
	said := strings.Count(log.String(), "no certificate, visitors")
	if tries := 1 + int(time.Since(first)/(3*time.Second)); said < 1 || said > tries {
		t.Errorf("the failure was logged %d times in %v:\n%s", said, time.Since(first), log.String())
	}
	_, port, _ := net.SplitHostPort(r.Addrs().HTTP)
	if status, body := get(t, r.visitor(t), "http://none.relay.test:"+port+"/.well-known/acme-challenge/none"); status != http.StatusNotFound {
		t.Errorf("a challenge that nobody has: got %d %s", status, body)
	}
	l.start(t)
	eventually(t, "a certificate, when the authority is back", func() bool {
		_, err := certificate(r, "shop.relay.test")
		return err == nil
	})
}

// Another node's challenge is known only from the store.
func TestACMEChallengeOfAnotherNodeIsAnswered(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.ACME = &config.ACME{Directory: "https://acme.test/dir"}
	r := startRelay(t, cfg)
	challenge := `{"type":"http-01","token":"tok","keyAuthorization":"tok.print","identifier":{"type":"dns","value":"far.relay.test"}}`
	if err := r.store.Certificates.Store(t.Context(), "acme/acme.test-dir/challenge_tokens/far.relay.test.json", []byte(challenge)); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(r.Addrs().HTTP)
	url := "http://far.relay.test:" + port + "/.well-known/acme-challenge/"
	if status, body := get(t, r.visitor(t), url+"tok"); status != http.StatusOK || body != "tok.print" {
		t.Errorf("got %d %q", status, body)
	}
	if status, _ := get(t, r.visitor(t), url+"other"); status != http.StatusNotFound {
		t.Errorf("another token: got %d", status)
	}
}

func TestTwoRelaysOfOneStoreAskOnce(t *testing.T) {
	t.Parallel() // most of it is waiting
	l := newACMELab(t, "http-01")
	l.start(t)
	ns, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() { ns.Shutdown(); ns.WaitForShutdown() })
	if !ns.ReadyForConnections(patience) {
		t.Fatal("the NATS server did not start")
	}
	l.cfg.NATS.URLs = []string{ns.ClientURL()}
	one := startRelay(t, l.cfg)
	second := l.cfg
	second.DataDir, second.EdgeHTTPListen, second.EdgeHTTPSListen = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	second.TCPPorts, second.UDPPorts = "none", "none"
	two := startRelay(t, second)
	one.serveHTTPS(t, "shop")
	eventually(t, "the other relay knows the claim", func() bool { return two.names.Claimed("shop.relay.test") })
	var both sync.WaitGroup
	serials := make([]string, 2)
	for i, r := range []*testRelay{one, two} {
		both.Go(func() {
			if cert, err := certificate(r, "shop.relay.test"); err != nil {
				t.Errorf("relay %d: %v", i, err)
			} else {
				serials[i] = cert.SerialNumber.String()
			}
		})
	}
	both.Wait()
	if serials[0] != serials[1] {
		t.Errorf("the relays show certificates %v, want one", serials)
	}
	if n := strings.Count(l.log(), "Added order"); n != 1 {
		t.Errorf("the authority got %d orders, want 1", n)
	}
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

const zoneSecret = "c2VjcmV0IG9mIHRoZSB6b25l"

// testZone is a name server. Every name resolves to loopback, and TXT records arrive by
// signed updates.
type testZone struct {
	addr, name string

	mu      sync.Mutex
	txt     map[string][]string
	changes int
	more    func(name string) []string // further TXT records; may be nil
}

func startZone(tb testing.TB, name string) *testZone {
	tb.Helper()
	z := &testZone{name: name, txt: make(map[string][]string)}
	ln, pc, err := listenBoth("zone", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	z.addr = ln.Addr().String()
	secrets := map[string]string{"adit.": zoneSecret}
	accept := func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }
	for _, s := range []*dns.Server{
		{Listener: ln, Handler: z, TsigSecret: secrets, MsgAcceptFunc: accept},
		{PacketConn: pc, Handler: z, TsigSecret: secrets, MsgAcceptFunc: accept},
	} {
		ready := make(chan struct{})
		s.NotifyStartedFunc = func() { close(ready) }
		go s.ActivateAndServe()
		<-ready
		tb.Cleanup(func() { s.Shutdown() })
	}
	return z
}

func (z *testZone) updates() int { z.mu.Lock(); defer z.mu.Unlock(); return z.changes }

func (z *testZone) texts(name string) []string {
	z.mu.Lock()
	texts, more := append([]string(nil), z.txt[name]...), z.more
	z.mu.Unlock()
	if more != nil {
		texts = append(texts, more(name)...)
	}
	return texts
}

// also adds TXT records from elsewhere to the zone.
func (z *testZone) also(more func(name string) []string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.more = more
}

func (z *testZone) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg).SetReply(q)
	if q.Opcode == dns.OpcodeUpdate {
		if q.IsTsig() == nil || w.TsigStatus() != nil {
			m.Rcode = dns.RcodeNotAuth
		} else {
			z.update(q.Ns)
			m.SetTsig("adit.", dns.HmacSHA512, 300, time.Now().Unix())
		}
		w.WriteMsg(m)
		return
	}
	m.Authoritative = true
	name, kind := strings.ToLower(q.Question[0].Name), q.Question[0].Qtype
	head := dns.RR_Header{Name: q.Question[0].Name, Rrtype: kind, Class: dns.ClassINET, Ttl: 1}
	switch {
	case kind == dns.TypeA:
		m.Answer = append(m.Answer, &dns.A{Hdr: head, A: net.IPv4(127, 0, 0, 1)})
	case kind == dns.TypeTXT:
		for _, text := range z.texts(name) {
			m.Answer = append(m.Answer, &dns.TXT{Hdr: head, Txt: []string{text}})
		}
	case kind == dns.TypeSOA && name == z.name:
		m.Answer = append(m.Answer, &dns.SOA{Hdr: head, Ns: "ns." + z.name, Mbox: "ops." + z.name, Serial: 1, Refresh: 1, Retry: 1, Expire: 1, Minttl: 1})
	}
	w.WriteMsg(m)
}

func (z *testZone) update(records []dns.RR) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.changes++
	for _, rr := range records {
		t, ok := rr.(*dns.TXT)
		if !ok {
			continue
		}
		name := strings.ToLower(t.Hdr.Name)
		var kept []string
		for _, old := range z.txt[name] {
			if old != t.Txt[0] {
				kept = append(kept, old)
			}
		}
		if t.Hdr.Class == dns.ClassINET {
			kept = append(kept, t.Txt[0])
		}
		z.txt[name] = kept
	}
}
