package relay

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"

	"adit/internal/certtest"
)

// TestSessionsTakenUpAgainAreJudged resumes TLS sessions, whose certificates are in their
// tickets.
func TestSessionsTakenUpAgainAreJudged(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("served"))
	home, another := certtest.New(t, "Home"), certtest.New(t, "Another")
	roots := s.roots(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			p := &presenter{certificate: home.Client(t, "Ann")}
			conf := &tls.Config{ServerName: "shop.relay.test", RootCAs: roots, MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(4), GetClientCertificate: p.present}
			visit := func(what string, status string, resumed bool, asked int32) {
				t.Helper()
				before := p.asked.Load()
				conn, err := tls.Dial("tcp", s.edge.HTTPSAddr().String(), conf)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\nConnection: close\r\n\r\n")
				answer, _ := io.ReadAll(conn) // the ticket is in it
				if !strings.HasPrefix(string(answer), "HTTP/1.1 "+status) {
					t.Errorf("%s: %.60s, want %s", what, answer, status)
				}
				if got := conn.ConnectionState().DidResume; got != resumed {
					t.Errorf("%s: taken up again: %v, want %v", what, got, resumed)
				}
				if got := p.asked.Load() - before; got != asked {
					t.Errorf("%s: asked %d times, want %d", what, got, asked)
				}
			}
			s.setPolicy(t, "shop", `{}`)
			visit("without a policy", "200", false, 0)
			visit("without a policy, again", "200", true, 0)
			s.setPolicy(t, "shop", certified(home.PEM()))
			visit("by a session from before the policy", "200", false, 1)
			visit("by a session with a certificate", "200", true, 0)
			s.setPolicy(t, "shop", certified(home.PEM(), "Eve"))
			// Who is refused is asked again, and may present another.
			visit("who is let in no more", "403", false, 1)
			visit("who was refused before", "403", false, 1)
			p.certificate = home.Client(t, "Eve")
			visit("who has another certificate now", "200", false, 1)
			visit("by a session with the other certificate", "200", true, 0)
			p.certificate = another.Client(t, "Ann")
			s.setPolicy(t, "shop", certified(another.PEM()))
			visit("whose authority was taken out, and who has one of the other", "200", false, 1)
			s.setPolicy(t, "shop", certified(another.PEM()+home.PEM()))
			visit("whose authority is one of two", "200", false, 1)
			visit("by a session of the same policy", "200", true, 0)
			p.certificate = home.Client(t, "Ann")
			s.setPolicy(t, "shop", `{}`)
			visit("without a policy", "200", false, 0)
			s.setPolicy(t, "shop", certified(home.PEM()))
			p.certificate = tls.Certificate{}
			visit("who presents none", "403", false, 1)
			p.certificate = home.Client(t, "Ann")
			visit("who presents one now", "200", false, 1)
		})
	}
}

// TestWhoIsRefusedMayPresentAnother uses visitors that keep their connections, as
// programs do that renew their certificates while they run.
func TestWhoIsRefusedMayPresentAnother(t *testing.T) {
	t.Parallel() // most of it is waiting
	s := startSite(t, testConfig(t.TempDir()), text("served"))
	home := certtest.New(t, "Home")
	for name, c := range map[string]struct {
		document string
		first    tls.Certificate
		status   int
	}{
		"not among those let in": {certified(home.PEM(), "Ann"), home.Client(t, "Eve"), 403},
		"of another authority":   {certified(home.PEM()), certtest.New(t, "Another").Client(t, "Ann"), 403},
		"run out":                {certified(home.PEM()), home.Client(t, "Ann", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), 403},
		"none":                   {certified(home.PEM()), tls.Certificate{}, 403},
		"beside passwords": {
			strings.TrimSuffix(certified(home.PEM(), "Ann"), "}") + `,"basic_auth":[{"name":"a","password":"b"}]}`, home.Client(t, "Eve"), 401,
		},
	} {
		s.setPolicy(t, "shop", c.document)
		clients, p := s.presenting(t, c.first)
		for version, visitor := range clients {
			p.certificate = c.first
			tlsOf(visitor).ClientSessionCache = tls.NewLRUClientSessionCache(4)
			if status, _ := ask(t, visitor, s.https, version); status != c.status {
				t.Errorf("%s, %s: status %d, want %d", name, version, status, c.status)
			}
			p.certificate = home.Client(t, "Ann")
			eventually(t, name+", "+version+" presents another", func() bool {
				resp, err := visitor.Get(s.https) // by HTTP/3 it may meet the end of the one before
				if err != nil {
					return false
				}
				defer resp.Body.Close()
				return resp.StatusCode == 200
			})
		}
	}
	// A limit says nothing of who came: the connection stays.
	s.setPolicy(t, "shop", strings.TrimSuffix(certified(home.PEM()), "}")+`,"max_body":1}`)
	clients, p := s.presenting(t, home.Client(t, "Ann"))
	for version, visitor := range clients {
		for range 2 {
			resp, err := visitor.Post(s.https, "", strings.NewReader("xx"))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 413 {
				t.Errorf("%s: status %d of a body that is too long", version, resp.StatusCode)
			}
		}
	}
	if got := p.asked.Load(); got != 3 {
		t.Errorf("asked %d times by 3 connections", got)
	}
}

func tlsOf(c *http.Client) *tls.Config {
	if tr, ok := c.Transport.(*http3.Transport); ok {
		return tr.TLSClientConfig
	}
	return c.Transport.(*http.Transport).TLSClientConfig
}
