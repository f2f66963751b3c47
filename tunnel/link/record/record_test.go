package record

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const patience = 20 * time.Second

var testCert = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "adit test"},
		// The bubble's clock starts in the year 2000.
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// trustTest trusts the one certificate of these tests.
func trustTest(certs []*x509.Certificate) error {
	if !bytes.Equal(certs[0].Raw, testCert().Certificate[0]) {
		return errors.New("another certificate")
	}
	return nil
}

func serverConfig() Config {
	return Config{Certificates: []tls.Certificate{testCert()}, Protocols: []string{"adit/1"}}
}

func clientConfig() Config {
	return Config{VerifyPeer: trustTest, Protocols: []string{"adit/1"}}
}

// leakCheck fails the test if goroutines of this package outlive it.
func leakCheck(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		var left string
		for end := time.Now().Add(patience); time.Now().Before(end); {
			buf := make([]byte, 1<<20)
			buf = buf[:runtime.Stack(buf, true)]
			left = ""
			for g := range strings.SplitSeq(string(buf), "\n\n") {
				if strings.Contains(g, "leakCheck") {
					continue
				}
				if strings.Contains(g, "link/record.(") || strings.Contains(g, "pion/") {
					left = g
				}
			}
			if left == "" {
				return
			}
			runtime.Gosched()
			time.Sleep(time.Millisecond)
		}
		t.Errorf("a goroutine is left:\n%s", left)
	})
}

func udpSocket(t testing.TB) *net.UDPConn {
	t.Helper()
	pc, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	return pc
}

// startListener runs a listener until the test ends.
func startListener(t testing.TB, pc net.PacketConn, cfg Config) *Listener {
	t.Helper()
	l, err := Listen(pc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve(context.Background()) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l
}

// pair makes a session over two sockets.
func pair(t testing.TB, client, server net.PacketConn, ccfg, scfg Config) (c, s *Conn) {
	t.Helper()
	l := startListener(t, server, scfg)
	return connect(t, l, client, ccfg)
}

func connect(t testing.TB, l *Listener, client net.PacketConn, ccfg Config) (c, s *Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := Client(ctx, client, l.Addr(), ccfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s, err = l.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// packet lays out a plaintext for Send.
func packet(c *Conn, plain string) []byte {
	head, tail := c.Room()
	p := make([]byte, head+len(plain)+tail)
	copy(p[head:], plain)
	return p
}

func send(t testing.TB, c *Conn, plains ...string) uint64 {
	t.Helper()
	packets := make([][]byte, len(plains))
	for i, p := range plains {
		packets[i] = packet(c, p)
	}
	first, err := c.Send(packets)
	if err != nil {
		t.Fatalf("Send: %v", err)
	}
	return first
}

// inbox runs Receive and keeps what came.
type inbox struct {
	c    *Conn
	mu   sync.Mutex
	got  []string
	nums []uint64
	news chan struct{}
	err  chan error
}

func receiveAll(c *Conn) *inbox {
	b := &inbox{c: c, news: make(chan struct{}, 1), err: make(chan error, 1)}
	go func() {
		into := make([]Packet, 16)
		for {
			n, err := c.Receive(into)
			if err != nil {
				b.err <- err
				return
			}
			b.mu.Lock()
			for _, p := range into[:n] {
				b.got = append(b.got, string(p.Data))
				b.nums = append(b.nums, p.Number)
			}
			b.mu.Unlock()
			select {
			case b.news <- struct{}{}:
			default:
			}
		}
	}()
	return b
}

// wait waits until n packets came, and returns all of them.
func (b *inbox) wait(t testing.TB, n int) []string {
	t.Helper()
	timeout := time.After(patience)
	for {
		b.mu.Lock()
		got := append([]string(nil), b.got...)
		b.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-b.news:
		case <-timeout:
			t.Fatalf("got %d packets, want %d: %.200q", len(got), n, got)
		}
	}
}

func (b *inbox) end(t testing.TB) error {
	t.Helper()
	select {
	case err := <-b.err:
		return err
	case <-time.After(patience):
		t.Fatal("Receive still waits")
		return nil
	}
}

func TestSessionCarriesPacketsBothWays(t *testing.T) {
	for _, suite := range []Suite{AES128GCM, AES256GCM, ChaCha20Poly1305} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, plain %v", suite, plain), func(t *testing.T) {
				leakCheck(t)
				ccfg := clientConfig()
				ccfg.Suites, ccfg.NoConnectionID = []Suite{suite}, plain
				c, s := pair(t, udpSocket(t), udpSocket(t), ccfg, serverConfig())
				atC, atS := receiveAll(c), receiveAll(s)
				for i := range 5 {
					if first := send(t, c, "one", "two", strings.Repeat("x", 1100)); first != uint64(3*i) {
						t.Fatalf("first number: got %d, want %d", first, 3*i)
					}
					send(t, s, "back", "")
				}
				if got := atS.wait(t, 15); got[12] != "one" || got[14] != strings.Repeat("x", 1100) {
					t.Errorf("server got %.100q", got)
				}
				if got := atC.wait(t, 10); got[8] != "back" || got[9] != "" {
					t.Errorf("client got %q", got)
				}
				if atS.nums[14] != 14 || c.NextNumber() != 15 {
					t.Errorf("numbers: got %d and next %d, want 14 and 15", atS.nums[14], c.NextNumber())
				}
				st := s.ConnectionState()
				if st.Suite != suite || st.Protocol != "adit/1" || st.ConnectionIDs == plain {
					t.Errorf("state: got %+v", st)
				}
				if len(c.ConnectionState().PeerCertificates) != 1 {
					t.Error("the client does not know the server's certificate")
				}
				c.Close()
				if err := atS.end(t); !errors.Is(err, ErrPeerClosed) || !errors.Is(err, net.ErrClosed) {
					t.Errorf("server's end: got %v, want ErrPeerClosed", err)
				}
			})
		}
	}
}

func TestServerEndsTheSession(t *testing.T) {
	leakCheck(t)
	c, s := pair(t, udpSocket(t), udpSocket(t), clientConfig(), serverConfig())
	atC := receiveAll(c)
	s.Close()
	if err := atC.end(t); !errors.Is(err, ErrPeerClosed) {
		t.Errorf("got %v, want ErrPeerClosed", err)
	}
	if _, err := c.Send([][]byte{packet(c, "late")}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Send after the end: got %v", err)
	}
}

func TestClientRefusesAnotherCertificate(t *testing.T) {
	leakCheck(t)
	l := startListener(t, udpSocket(t), serverConfig())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	want := errors.New("not mine")
	cfg := clientConfig()
	cfg.VerifyPeer = func([]*x509.Certificate) error { return want }
	if _, err := Client(ctx, udpSocket(t), l.Addr(), cfg); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestRefusalReachesTheOtherEnd(t *testing.T) {
	leakCheck(t)
	scfg, ccfg := serverConfig(), clientConfig()
	scfg.RequireClientCert = true
	scfg.VerifyPeer = func([]*x509.Certificate) error { return errors.New("a stranger") }
	ccfg.Certificates = []tls.Certificate{testCert()}
	l := startListener(t, udpSocket(t), scfg)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := Client(ctx, udpSocket(t), l.Addr(), ccfg)
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "BadCertificate") {
		t.Errorf("got %v, want the server's alert", err)
	}
}

func TestClientCertificateReachesTheServer(t *testing.T) {
	leakCheck(t)
	scfg, ccfg := serverConfig(), clientConfig()
	scfg.RequireClientCert, scfg.VerifyPeer = true, trustTest
	ccfg.Certificates = []tls.Certificate{testCert()}
	_, s := pair(t, udpSocket(t), udpSocket(t), ccfg, scfg)
	if n := len(s.ConnectionState().PeerCertificates); n != 1 {
		t.Errorf("got %d certificates, want 1", n)
	}
}
