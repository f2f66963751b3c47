package edge

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/netip"
	"strconv"
	"testing"
)

// TestNamesThatWereAskedForAreBounded matters because strangers can ask for any number of
// names.
func TestNamesThatWereAskedForAreBounded(t *testing.T) {
	leaf := &x509.Certificate{DNSNames: []string{"*.shop.test"}}
	e := New(Config{Certificates: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &tls.Certificate{Leaf: leaf}, nil }})
	for i := range maxServed + 1 {
		if _, err := e.certificate(&tls.ClientHelloInfo{ServerName: strconv.Itoa(i) + ".shop.test"}); err != nil {
			t.Fatal(err)
		}
		if n := len(e.served.leaves); n > maxServed {
			t.Fatalf("%d are remembered, want at most %d", n, maxServed)
		}
	}
	if e.served.get(strconv.Itoa(maxServed)+".shop.test") == nil || e.served.get(strconv.Itoa(maxServed-1)+".shop.test") != nil {
		t.Error("the last is not remembered, or those before it still are")
	}
	if _, err := e.certificate(&tls.ClientHelloInfo{ServerName: "next.shop.test"}); err != nil || len(e.served.leaves) != 2 {
		t.Errorf("%v; %d are remembered, want the last and the next", err, len(e.served.leaves))
	}
	last := &http.Request{TLS: &tls.ConnectionState{ServerName: strconv.Itoa(maxServed) + ".shop.test."}}
	for name, want := range map[string]bool{"a.shop.test": false, "10000.shop.test": false, "other.test": true} {
		if got := e.misdirected(last, name, netip.Addr{}); got != want {
			t.Errorf("a request for %s is misdirected: %v, want %v", name, got, want)
		}
	}
}
