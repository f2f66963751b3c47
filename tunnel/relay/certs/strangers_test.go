package certs

import (
	"context"
	"crypto/tls"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/certmagic"
)

// asked is a storage that has nothing, and counts who asks.
type asked struct {
	certmagic.Storage
	times atomic.Int32
}

func (a *asked) Load(context.Context, string) ([]byte, error) {
	a.times.Add(1)
	return nil, fs.ErrNotExist
}

// TestStrangersDoNotReachTheStore asks for challenges of names that are nobody's:
// a store of several nodes is another machine.
func TestStrangersDoNotReachTheStore(t *testing.T) {
	store := new(asked)
	a := New(Config{
		Domain: "relay.test", HTTP01: true, TLSALPN01: true, Storage: store,
		Allowed: func(name string) bool { return name == "shop.relay.test" },
	})
	defer a.Close()
	ask := func(name string) int32 {
		before := store.times.Load()
		r := httptest.NewRequest(http.MethodGet, "http://"+name+"/.well-known/acme-challenge/token", nil)
		if a.HandleHTTP(httptest.NewRecorder(), r) {
			t.Errorf("%s: a challenge that nobody has was answered", name)
		}
		conn, _ := net.Pipe()
		hello := &tls.ClientHelloInfo{Conn: conn, ServerName: name, SupportedProtos: []string{challengeProto}}
		if _, err := a.Get(hello); err == nil {
			t.Errorf("%s: there is a certificate", name)
		}
		return store.times.Load() - before
	}
	if n := ask("other.relay.test"); n != 0 {
		t.Errorf("the store was asked %d times for a name that nobody has", n)
	}
	if n := ask("shop.relay.test"); n != 2 {
		t.Errorf("the store was asked %d times for a name that may be proved, want by both challenges", n)
	}
	r := httptest.NewRequest(http.MethodGet, "http://Shop.relay.test:80/.well-known/acme-challenge/token", nil)
	if before := store.times.Load(); a.HandleHTTP(httptest.NewRecorder(), r) || store.times.Load() == before {
		t.Error("the store was not asked for a name with a port")
	}
}
