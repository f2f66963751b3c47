package clienthello

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// hello returns the ClientHello that crypto/tls sends for a name. It is one of TLS
// 1.2, which is short: the fuzzer takes a long one apart for a minute each time
// that it finds something.
func hello(tb testing.TB, name string) []byte {
	tb.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}).Handshake()
		client.Close()
	}()
	buf := make([]byte, 64<<10)
	server.SetReadDeadline(time.Now().Add(20 * time.Second))
	n, err := server.Read(buf)
	if err != nil {
		tb.Fatal(err)
	}
	return buf[:n]
}

func TestServerNameIsFoundAndNothingIsLost(t *testing.T) {
	whole := hello(t, "Shop.Example.COM")
	// The same in records of ten bytes.
	var split []byte
	for rest := whole[5:]; len(rest) > 0; {
		n := min(10, len(rest))
		split = append(split, whole[0], whole[1], whole[2])
		split = binary.BigEndian.AppendUint16(split, uint16(n))
		split = append(split, rest[:n]...)
		rest = rest[n:]
	}
	for name, b := range map[string][]byte{"one record": whole, "many records": split} {
		got, err := parse(bytes.NewReader(append(bytes.Clone(b), "more"...)))
		if err != nil || got.Name != "shop.example.com" || !slices.Equal(got.Protos, []string{"h2", "http/1.1"}) {
			t.Errorf("%s: got %q, %q, %v", name, got.Name, got.Protos, err)
		}
		read := got.Bytes
		if !bytes.HasPrefix(append(bytes.Clone(b), "more"...), read) || len(read) < len(b) {
			t.Errorf("%s: %d bytes are handed on, want at least %d", name, len(read), len(b))
		}
	}
}

func TestGarbageIsNoHello(t *testing.T) {
	whole := hello(t, "shop.example.com")
	for name, b := range map[string][]byte{
		"nothing":      {},
		"http":         []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
		"cut short":    whole[:len(whole)-3],
		"wrong type":   append([]byte{23}, whole[1:]...),
		"endless":      bytes.Repeat([]byte{22, 3, 1, 0, 1, 1}, 100_000),
		"length lies":  append([]byte{22, 3, 1, 0xff, 0xff}, whole[5:]...),
		"all the same": bytes.Repeat([]byte{0x16}, 1<<20),
	} {
		if got, err := parse(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: got name %q", name, got.Name)
		}
	}
}

func TestPlainHTTPIsToldFromGarbage(t *testing.T) {
	for begin, want := range map[string]bool{
		"GET / HTTP/1.1\r\n": true, "PUT /a HTTP/1.1\r\n": true, "POST /": true, "OPTIONS *": true, "PRI * HTTP/2.0\r\n": true, "AZAZA /": true,
		"GET\x00/": false, "GE / ": false, "/GET ": false, "get / HTTP/1.1\r\n": false, "SSH-2.0-OpenSSH": false, "G@T / ": false, "G[T / ": false, "\x01\x02\x03\x04\x05": false,
	} {
		_, err := parse(strings.NewReader(begin + strings.Repeat("x", 64)))
		if got := IsPlainHTTP(err); got != want {
			t.Errorf("%q: got %t for error %v, want %t", begin, got, err, want)
		}
	}
	_, err := parse(strings.NewReader("GE"))
	if IsPlainHTTP(err) || IsPlainHTTP(nil) {
		t.Errorf("got plain HTTP for %v and no error, want neither", err)
	}
}

func FuzzServerName(f *testing.F) {
	f.Add(hello(f, "shop.example.com"))
	f.Add([]byte("\x16\x03\x01\x00\x05hello"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parse(bytes.NewReader(b))
		if err == nil && !bytes.HasPrefix(b, got.Bytes) {
			t.Fatalf("%q: what is handed on is not what came", got.Name)
		}
	})
}
