package e2e

import (
	"crypto/sha256"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestHalfCloseReachesTheOriginAndBack(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("tcp", newEcho(t), nil)
	echoesAfterTheEnd(t, "tcp", strings.TrimPrefix(made.PublicURL, "tcp://"))
}

// echoesAfterTheEnd writes to an echo behind addr, ends its own direction, and wants all
// of it back, and then the end: for that the origin must have seen the visitor's.
func echoesAfterTheEnd(t *testing.T, what, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	const size = 8 << 20
	go func() {
		io.CopyN(conn, &pattern{}, size)
		conn.(*net.TCPConn).CloseWrite()
	}()
	sum := sha256.New()
	if n, err := io.Copy(sum, conn); err != nil || n != size || hexSum(sum) != patternSum(size) {
		t.Errorf("%s: %d bytes came back, %v, want %d and equal", what, n, err, size)
	}
}
