package link

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// strangeDetour opens a detour as anybody can, who needs no token for it.
func strangeDetour(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", addr,
		&tls.Config{NextProtos: []string{alpnDetour}, InsecureSkipVerify: true})
	if err != nil {
		t.Fatalf("open a detour: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func framed(datagram []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(datagram))), datagram...)
}

// ourData is the number of a first record of application data, with its epoch.
const ourData = 1<<48 | 1<<40

// forgedRecord is what may be seen of a record by who has not its keys.
func forgedRecord(cid []byte, number uint64, size int) []byte {
	b := binary.BigEndian.AppendUint64([]byte{25, 0xfe, 0xfd}, number)
	b = append(b, cid...)
	b = binary.BigEndian.AppendUint16(b, uint16(size))
	return append(b, make([]byte, size)...)
}

// tapped is a socket that tells what Connection ID is sent under.
type tapped struct {
	net.PacketConn
	mu  sync.Mutex
	cid []byte
}

func (c *tapped) WriteTo(b []byte, addr net.Addr) (int, error) {
	if b[0] == 25 && len(b) > 19 {
		c.mu.Lock()
		c.cid = append([]byte(nil), b[11:19]...)
		c.mu.Unlock()
	}
	return c.PacketConn.WriteTo(b, addr)
}

// TestStrangersAtTheDetour brings what none of them may: each is closed in time,
// and the session whose Connection ID they know goes on where it is.
func TestStrangersAtTheDetour(t *testing.T) {
	tap := new(tapped)
	l, fingerprint := testListener(t, ListenConfig{})
	defer l.Close()
	client, server := dialDTLSPair(t, l, DialConfig{Fingerprint: fingerprint, ListenPacket: tap.listen})
	defer client.Close("over")
	testEcho(t, pair{client: client, server: server})
	tap.mu.Lock()
	cid := tap.cid
	tap.mu.Unlock()
	where := server.RemoteAddr().String()
	forged := forgedRecord(cid, ourData+1<<30, 40)
	cases := []struct {
		name   string
		send   []byte
		repeat int
	}{
		{"nothing", nil, 0},
		{"half a length", []byte{0}, 1},
		{"half a frame", []byte{4, 0, 25}, 1},
		{"garbage", []byte("GET / HTTP/1.1\r\nHost: relay\r\n\r\n"), 1},
		{"an empty frame", []byte{0, 0}, 1},
		{"a frame too short", framed(make([]byte, minFramed-1)), 1},
		{"a frame too long", []byte{0xff, 0xff}, 1},
		{"no record", framed(make([]byte, 100)), 1},
		{"a record without a connection ID", framed(append([]byte{23, 0xfe, 0xfd, 0, 1}, make([]byte, 40)...)), 1},
		{"a client hello", framed(append([]byte{22, 0xfe, 0xfd}, make([]byte, 60)...)), 1},
		{"an unknown connection ID", framed(forgedRecord([]byte("stranger"), ourData, 40)), 1},
		{"a forged record", framed(forged), 1},
		{"many forged records", framed(forged), 5000},
		{"a forged record of the handshake", framed(forgedRecord(cid, 1<<48, 40)), 1},
	}
	t.Run("all", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				conn := strangeDetour(t, l.Addr().String())
				conn.SetDeadline(time.Now().Add(patience))
				for range c.repeat {
					if _, err := conn.Write(c.send); err != nil {
						break // closed already
					}
				}
				for {
					_, err := conn.Read(make([]byte, 1))
					if errors.Is(err, os.ErrDeadlineExceeded) {
						t.Fatal("the relay keeps the connection")
					}
					if err != nil {
						break
					}
					t.Fatal("the relay answers a stranger")
				}
			})
		}
	})
	if got := server.RemoteAddr().String(); got != where || server.Transport() != DTLS || client.Err() != nil || server.Err() != nil {
		t.Errorf("session at %s over %s, ended: %v, %v; want it as before at %s", got, server.Transport(), client.Err(), server.Err(), where)
	}
}

func (c *tapped) listen(ctx context.Context, relay netip.AddrPort) (net.PacketConn, error) {
	socket, err := listenUDP(ctx, relay)
	c.PacketConn = socket
	return c, err
}

// TestCrowdAtTheDetour opens as many as it can from one address, and sends a
// little on each: a few are served at a time, and none costs anything in the end.
func TestCrowdAtTheDetour(t *testing.T) {
	const few = 8
	l, fingerprint := testListener(t, ListenConfig{MaxHandshakes: few})
	defer l.Close()
	before := runtime.NumGoroutine() + few // some of the listener's own may not have begun
	var crowd sync.WaitGroup
	for range 20 {
		crowd.Go(func() {
			for range 50 {
				conn, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					continue
				}
				secured := tls.Client(conn, &tls.Config{NextProtos: []string{alpnDetour}, InsecureSkipVerify: true})
				secured.SetDeadline(time.Now().Add(time.Second))
				if secured.Handshake() == nil {
					secured.Write(framed(forgedRecord([]byte("stranger"), ourData, 40)))
				}
				conn.Close()
			}
		})
	}
	crowd.Wait()
	if h := l.Handshakes(); h.TurnedAway == 0 {
		t.Errorf("got %+v, want some turned away", h)
	}
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, at most %d before the crowd came", runtime.NumGoroutine(), before)
		}
	}
	client, server := dialDTLSPair(t, l, DialConfig{Fingerprint: fingerprint})
	testEcho(t, pair{client: client, server: server})
	client.Close("over")
}
