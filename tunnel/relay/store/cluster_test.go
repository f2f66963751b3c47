package store

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"adit/internal/freeport"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/events"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/wire"
)

// startNATS runs a server as an operator would run one beside the relay. With
// port 0 it takes a free one, which stays its own while it restarts.
func startNATS(tb testing.TB, dir string, port int, change func(*server.Options)) *server.Server {
	tb.Helper()
	if port == 0 {
		port = freeport.Get(tb)
	}
	opts := &server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true, SyncAlways: true,
	}
	if change != nil {
		change(opts)
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		tb.Fatal(err)
	}
	ns.Start()
	tb.Cleanup(func() { stopNATS(ns) })
	if !ns.ReadyForConnections(natstest.Ready) {
		tb.Fatal("the server did not start")
	}
	return ns
}

func stopNATS(ns *server.Server) {
	ns.Shutdown()
	ns.WaitForShutdown()
}

func openAt(tb testing.TB, cfg Config) *Store {
	tb.Helper()
	cfg.Dir = tb.TempDir()
	s, err := Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

// patience is well above the heartbeats after which a watch knows that its
// server restarted.
const patience = 90 * time.Second

func eventually(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	start := time.Now()
	for ; !f(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > patience {
			tb.Fatalf("%s: it did not happen in %v", what, patience)
		}
	}
	tb.Logf("%s: after %v", what, time.Since(start).Round(time.Millisecond))
}

// TestExternalServerRestarts checks that two relays share what an external server keeps, that
// a restart of the server loses nothing, and that both relays still learn of changes after it.
func TestExternalServerRestarts(t *testing.T) {
	dir := t.TempDir()
	ns := startNATS(t, dir, 0, nil)
	port := ns.Addr().(*net.TCPAddr).Port
	urls := []string{fmt.Sprintf("nats://127.0.0.1:%d", port)}
	a, b := openAt(t, Config{URLs: urls}), openAt(t, Config{URLs: urls})
	if !a.Connected() {
		t.Error("it does not say that it is connected")
	}
	first, second := secret(), secret()
	if _, err := a.Clients.Add(t.Context(), "shop", first, ""); err != nil {
		t.Fatal(err)
	}
	h := claims.Holder{Slot: claims.SlotTLS, Instance: "i", Key: "k", Type: "https", Mode: "standard"}
	if _, err := a.Claims.Take(t.Context(), claims.TargetDomain("shop.example.com"), "c1", h, nobodyAway); err != nil {
		t.Fatal(err)
	}
	if err := a.Policies.Set(t.Context(), "domain.a", []byte(`{"x":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := a.Events.Append(t.Context(), []wire.Access{{Path: "/before"}}); err != nil {
		t.Fatal(err)
	}
	knows := func(s *Store, secret [32]byte) func() bool {
		return func() bool { _, ok := s.Clients.Authenticate(secret[:], time.Now()); return ok }
	}
	eventually(t, "the other relay hears of the client", knows(b, first))

	stopNATS(ns)
	eventually(t, "the relay notices", func() bool { return !a.Connected() && !b.Connected() })
	if !knows(a, first)() {
		t.Error("agents cannot log in while the server is away")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := a.Policies.Set(ctx, "domain.b", []byte(`{}`)); err == nil {
		t.Error("a write was acknowledged while the server was away")
	}
	if w := a.Writes(); w.Errors == 0 || w.Done < 4 {
		t.Errorf("writes: %+v", w)
	}
	startNATS(t, dir, port, nil)
	eventually(t, "both are connected again", func() bool { return a.Connected() && b.Connected() })

	eventually(t, "a write after the restart", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := a.Clients.Add(ctx, "second", second, "")
		return err == nil
	})
	eventually(t, "the other relay hears of it: its watch resumed", knows(b, second))
	for name, s := range map[string]*Store{"first relay": a, "second relay": b, "a relay that starts now": openAt(t, Config{URLs: urls})} {
		if _, ok := s.Claims.Get(claims.TargetDomain("shop.example.com")); !ok || !knows(s, first)() || !knows(s, second)() {
			t.Errorf("%s: a client or the claim is gone", name)
		}
		if p, ok := s.Policies.Get("domain.a"); !ok || string(p.Document) != `{"x":1}` {
			t.Errorf("%s: the policy is gone", name)
		}
		var got []string
		_, _, err := s.Events.Walk(t.Context(), events.Scan{}, func(a *wire.Access) bool { got = append(got, a.Path); return true })
		if err != nil || !slices.Equal(got, []string{"/before"}) {
			t.Errorf("%s: events %v, %v", name, got, err)
		}
	}
	if _, err := b.Claims.Take(t.Context(), claims.TargetDomain("shop.example.com"), "c2", h, nobodyAway); err == nil {
		t.Error("the second relay gave the first one's name away")
	}
}

// TestExternalServerAsksForTLS checks that ca, cert and key are used for the connection, and
// that nothing is accepted without them.
func TestExternalServerAsksForTLS(t *testing.T) {
	dir := t.TempDir()
	files := serverFiles(t, dir)
	pair, err := tls.LoadX509KeyPair(files["server.pem"], files["server.key"])
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(files["ca.pem"])
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	ns := startNATS(t, t.TempDir(), 0, func(o *server.Options) {
		o.Username, o.Password = "relay", "pass"
		o.TLS, o.TLSVerify = true, true
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	})
	url := func(user string) []string { return []string{"tls://" + user + "@" + ns.Addr().String()} }
	for _, c := range []struct {
		name string
		cfg  Config
		ok   bool
	}{
		{"all", Config{URLs: url("relay:pass"), CA: files["ca.pem"], Cert: files["client.pem"], Key: files["client.key"]}, true},
		{"wrong password", Config{URLs: url("relay:guess"), CA: files["ca.pem"], Cert: files["client.pem"], Key: files["client.key"]}, false},
		{"no certificate", Config{URLs: url("relay:pass"), CA: files["ca.pem"]}, false},
		{"authority unknown", Config{URLs: url("relay:pass"), Cert: files["client.pem"], Key: files["client.key"]}, false},
	} {
		c.cfg.Dir = t.TempDir()
		s, err := Open(t.Context(), c.cfg)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err == nil {
			if err := s.Settings.Put(t.Context(), "x", []byte("1")); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			s.Close()
		}
	}
}

// serverFiles makes an authority and what it issued for a server and a client.
func serverFiles(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	files := map[string]string{}
	write := func(name, kind string, data []byte) {
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	var ca *x509.Certificate
	var caKey *ecdsa.PrivateKey
	for i, name := range []string{"ca", "server", "client"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			tb.Fatal(err)
		}
		cert := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: i == 0, BasicConstraintsValid: true,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		if ca == nil {
			ca, caKey = cert, key
		}
		der, err := x509.CreateCertificate(rand.Reader, cert, ca, &key.PublicKey, caKey)
		if err != nil {
			tb.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			tb.Fatal(err)
		}
		write(name+".pem", "CERTIFICATE", der)
		write(name+".key", "PRIVATE KEY", private)
	}
	return files
}
