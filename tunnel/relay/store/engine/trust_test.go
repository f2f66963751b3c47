package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"adit/internal/certtest"
)

func forServer(c *x509.Certificate) {
	c.ExtKeyUsage, c.IPAddresses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []net.IP{net.IPv4(127, 0, 0, 1)}
}

func isOver(c *x509.Certificate) { c.NotBefore, c.NotAfter = c.NotBefore.Add(-time.Hour), c.NotBefore }

// TestCertificatesThatAreNotTakenAreSaid covers a node's start and a running node: the log
// says once why NATS is away, and the node reconnects when the certificates are corrected.
func TestCertificatesThatAreNotTakenAreSaid(t *testing.T) {
	t.Parallel() // most of it is waiting
	ca, other := certtest.New(t, "ca"), certtest.New(t, "other")
	good, bad, over := ca.Client(t, "n0", forServer), other.Client(t, "n0", forServer), ca.Client(t, "n0", forServer, isOver)
	var shown atomic.Pointer[tls.Certificate]
	var asks atomic.Bool // for a certificate of who comes
	shown.Store(&good)
	ns, url := run(t, func(o *server.Options) {
		o.TLSTimeout = 10
		o.TLSConfig = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			cfg := &tls.Config{Certificates: []tls.Certificate{*shown.Load()}}
			if asks.Load() {
				cfg.ClientAuth = tls.RequireAnyClientCert
			}
			return cfg, nil
		}}
	})
	log := new(told)
	begin := func(by *certtest.Authority) (*Engine, error) {
		file := filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(file, []byte(by.PEM()), 0o600); err != nil {
			t.Fatal(err)
		}
		return Open(Config{Dir: t.TempDir(), URLs: []string{url}, CA: file, Log: slog.New(slog.NewTextHandler(log, nil))})
	}
	refused := func(by *certtest.Authority, want string) {
		t.Helper()
		if e, err := begin(by); err == nil {
			e.Close()
			t.Fatal("it was opened")
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want that it says %s", err, want)
		}
	}
	refused(other, "nats.ca")
	asks.Store(true)
	refused(ca, "nats.cert")
	asks.Store(false)
	e, err := begin(ca)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { e.Run(ctx, func() {}) })
	defer func() { cancel(); running.Wait(); e.Close() }()
	for why, cert := range map[string]*tls.Certificate{"unknown authority": &bad, "has expired": &over, "nats.cert": &good} {
		shown.Store(cert)
		asks.Store(cert == &good)
		all, err := ns.Connz(nil)
		eventually(t, "it alone is connected", func() bool { // not those that were refused
			all, err = ns.Connz(nil)
			return err == nil && len(all.Conns) == 1
		})
		if err := ns.DisconnectClientByID(all.Conns[0].Cid); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the log says "+why, func() bool { return log.count(why) > 0 })
		shown.Store(&good)
		asks.Store(false)
		eventually(t, "it is back", e.Connected)
		if n := log.count(why); n != 1 {
			t.Errorf("the log says %d times: %s", n, why)
		}
	}
}
