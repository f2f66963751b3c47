package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// serveUDP runs a UDP service that sends back what answer makes of each packet,
// until the test ends, and returns its port.
func serveUDP(t *testing.T, answer func(packet []byte, from net.Addr) []byte) (port int) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadBuffer(4 << 20)
	var serving sync.WaitGroup
	t.Cleanup(func() {
		conn.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for b := make([]byte, 64<<10); ; {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(answer(b[:n], from), from)
		}
	})
	return conn.LocalAddr().(*net.UDPAddr).Port
}

// same answers with the packet itself.
func same(packet []byte, _ net.Addr) []byte { return packet }

// packetOf is packet i of a visitor: of a size and bytes that follow from both.
func packetOf(visitor, i int) []byte {
	sizes := []int{8, 9, 200, 200, 200, 1200, 1232, 1233, 1400, 1472, 4000, 9000}
	b := make([]byte, sizes[(visitor+i/3)%len(sizes)])
	rng := rand.New(rand.NewPCG(uint64(visitor), uint64(i)))
	for j := range b {
		b[j] = byte(rng.Uint32())
	}
	binary.BigEndian.PutUint32(b, uint32(visitor))
	binary.BigEndian.PutUint32(b[4:], uint32(i))
	return b
}

// TestBurstsOfUDPPacketsComeWhole has two visitors send bursts of packets of many
// sizes at a time, by either transport: each comes back with its bytes, and to
// the visitor that sent it.
func TestBurstsOfUDPPacketsComeWhole(t *testing.T) {
	port := serveUDP(t, same)
	for _, transport := range []string{"dtls", "tls"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			relay := newRelay(t)
			agent := newAgentWith(t, fmt.Sprintf("[session]\ntransport = %q\n", transport))
			agent.configure(relay.client("laptop"))
			made := agent.publish("udp", port, nil)
			var visitors []net.Conn
			for range 2 {
				c, err := net.Dial("udp", strings.TrimPrefix(made.PublicURL, "udp://"))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_ = c.(*net.UDPConn).SetReadBuffer(4 << 20)
				visitors = append(visitors, c)
			}
			next := 0
			for _, burst := range []int{1, 2, 7, 36, 36, 1, 12} {
				for v, c := range visitors {
					sendBurst(t, c, v, next, burst)
				}
				for v, c := range visitors {
					awaitBurst(t, c, v, next, burst)
				}
				next += burst
			}
			await(t, "the inspector knows whose the flows are", func() error {
				var seen struct{ Items []struct{ Visitor string } }
				agent.ok(http.StatusOK, "GET", "/api/v1/requests", nil, &seen)
				for _, c := range visitors {
					if !slices.ContainsFunc(seen.Items, func(f struct{ Visitor string }) bool { return f.Visitor == c.LocalAddr().String() }) {
						return fmt.Errorf("it has %+v, want a flow of %s", seen.Items, c.LocalAddr())
					}
				}
				return nil
			})
			if status := agent.status(); status.Transport != transport {
				t.Errorf("all went by %s", status.Transport)
			}
		})
	}
}

func sendBurst(t *testing.T, c net.Conn, visitor, first, burst int) {
	t.Helper()
	for i := range burst {
		if _, err := c.Write(packetOf(visitor, first+i)); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitBurst wants each packet of a burst back, and sends again what a busy
// machine has lost.
func awaitBurst(t *testing.T, c net.Conn, visitor, first, burst int) {
	t.Helper()
	missing := map[int]bool{}
	for i := range burst {
		missing[first+i] = true
	}
	buf := make([]byte, 64<<10)
	for end := time.Now().Add(patience); len(missing) > 0; {
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
		n, err := c.Read(buf)
		if err != nil {
			if time.Now().After(end) {
				t.Fatalf("%d of %d packets did not come back: %v", len(missing), burst, err)
			}
			for i := range missing {
				sendBurst(t, c, visitor, i, 1)
			}
			continue
		}
		if n < 8 {
			t.Fatalf("%d bytes came that nobody sent", n)
		}
		i := int(binary.BigEndian.Uint32(buf[4:]))
		if !bytes.Equal(buf[:n], packetOf(visitor, i)) {
			t.Fatalf("visitor %d: packet %d came with %d bytes, or others than were sent", visitor, i, n)
		}
		delete(missing, i)
	}
}
