package e2e

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// newStillOrigin answers what a connection's first byte asks for: d is bytes
// without end, u reads nothing ever, and e is an echo.
func newStillOrigin(t *testing.T) (port int) {
	t.Helper()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	return serveTCP(t, listenLoopback(t), func(conn net.Conn) {
		var wish [1]byte
		if _, err := io.ReadFull(conn, wish[:]); err != nil {
			return
		}
		switch wish[0] {
		case 'd':
			for chunk := make([]byte, 256<<10); ; {
				if _, err := conn.Write(chunk); err != nil {
					return
				}
			}
		case 'u':
			<-over
		default:
			io.Copy(conn, conn)
		}
	})
}

// TestThoseWhoStandStillStopNobody: visitors who ask for much and read no more
// of it, and an origin that does not read what it is sent, are met every day: a
// film on pause, a phone in a tunnel. Their neighbours must not notice.
func TestThoseWhoStandStillStopNobody(t *testing.T) {
	for _, transport := range []string{"dtls", "tls"} {
		t.Run(transport, func(t *testing.T) {
			relay := newRelay(t)
			agent := newAgentWith(t, fmt.Sprintf("[session]\ntransport = %q\n", transport))
			agent.configure(relay.client("laptop"))
			made := agent.publish("tcp", newStillOrigin(t), nil)
			visit := func(wish string) net.Conn {
				conn, err := net.DialTimeout("tcp", strings.TrimPrefix(made.PublicURL, "tcp://"), patience)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				conn.SetDeadline(time.Now().Add(patience))
				if _, err := io.WriteString(conn, wish); err != nil {
					t.Fatal(err)
				}
				return conn
			}
			ask := func(when string) {
				conn := visit("e")
				defer conn.Close()
				began := time.Now()
				for _, size := range []int{5, 1 << 20} {
					answer := make([]byte, size)
					go conn.Write(make([]byte, size))
					if _, err := io.ReadFull(conn, answer); err != nil {
						t.Fatalf("%s: %v after %v", when, err, time.Since(began))
					}
				}
			}
			for i := range 20 {
				read := int64(1)
				if i < 6 {
					read = 24 << 20 // for which its window grows
				}
				conn := visit("d")
				if _, err := io.CopyN(io.Discard, conn, read); err != nil {
					t.Fatalf("download %d: %v", i, err)
				}
			}
			ask("beside downloads that nobody reads")
			for range 150 {
				conn := visit("u")
				go func() {
					for chunk := make([]byte, 256<<10); ; {
						if _, err := conn.Write(chunk); err != nil {
							return
						}
					}
				}()
			}
			for range 5 {
				ask("beside uploads that nobody reads")
			}
		})
	}
}
