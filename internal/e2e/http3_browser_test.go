package e2e

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"adit/internal/freeport"
)

// TestBrowserOverHTTP3 has Chromium load a page, download and upload some
// megabytes and follow events over HTTP/3. The site's port is there over UDP
// only, so what the origin serves cannot have come in another way; the browser
// says the same of each request.
func TestBrowserOverHTTP3(t *testing.T) {
	browse := browser(t)
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	agent.publish("https", newOrigin(t), map[string]any{"domain": "h3"})
	port := udpOnly(t, relay.https)
	const size = 6 << 20
	t.Log(browse("e2e:http3",
		fmt.Sprintf("ADIT_SITE=https://h3.localhost:%d/", port),
		"ADIT_SPKI="+keySum(t, filepath.Join(relay.dir, "ca.pem")),
		"ADIT_SIZE="+strconv.Itoa(size),
		"ADIT_SUM="+patternSum(size),
	))
}

// keySum is what browsers know a public key by.
func keySum(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s has no certificate", file)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// udpOnly is a port of loopback whose UDP is that of addr, and which has no TCP.
func udpOnly(t *testing.T, addr string) (port int) {
	t.Helper()
	front, err := net.ListenPacket("udp4", freeport.Loopback(t))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	behind := make(map[string]net.Conn) // by the visitor's address
	var forwarding sync.WaitGroup
	t.Cleanup(func() {
		front.Close()
		mu.Lock()
		for _, c := range behind {
			c.Close()
		}
		mu.Unlock()
		forwarding.Wait()
	})
	back := func(c net.Conn, to net.Addr) {
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			front.WriteTo(buf[:n], to)
		}
	}
	forwarding.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := front.ReadFrom(buf)
			if err != nil {
				return
			}
			mu.Lock()
			c := behind[from.String()]
			if c == nil {
				if c, err = net.Dial("udp4", addr); err != nil {
					mu.Unlock()
					continue
				}
				behind[from.String()] = c
				forwarding.Go(func() { back(c, from) })
			}
			mu.Unlock()
			c.Write(buf[:n])
		}
	})
	return front.LocalAddr().(*net.UDPAddr).Port
}
