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
	conn, err := net.Dial("tcp", strings.TrimPrefix(made.PublicURL, "tcp://"))
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
	n, err := io.Copy(sum, conn) // ends only if the origin saw the end and its own came back
	if err != nil || n != size || hexSum(sum) != patternSum(size) {
		t.Errorf("%d bytes came back, %v, want %d and equal", n, err, size)
	}
}
