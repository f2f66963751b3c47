package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"adit/tunnel/agent/inspect"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// tcpStream makes a TCP connection a stream.
type tcpStream struct{ *net.TCPConn }

func (s tcpStream) Reset() { s.SetLinger(0); s.Close() }

var _ link.Stream = tcpStream{}

// benchmarkForward moves HTTP responses of 1 MiB through a pipe over loopback.
func benchmarkForward(b *testing.B, inspected bool) {
	const size = 1 << 20
	a := &Agent{activity: make(chan struct{}, 1), inspector: inspect.New(inspect.Limits{})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); a.inspector.Run(ctx) }()
	defer func() { cancel(); <-done }()

	originSide, originPeer := tcpPair(b)
	streamSide, visitor := tcpPair(b)
	yes := inspected
	t := newTunnel("tun_1", TunnelSpec{Type: wire.TypeHTTP, LocalIP: "127.0.0.1", LocalPort: 80, Inspect: &yes}, time.Now())
	piped := make(chan struct{})
	go func() {
		defer close(piped)
		a.pipe(t, t.route.Load(), tcpStream{streamSide}, originSide, wire.Preface{Kind: wire.StreamHTTP})
	}()
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", size)
	response := append([]byte(head), make([]byte, size)...)
	request := []byte("GET /file HTTP/1.1\r\nHost: shop.example.com\r\nUser-Agent: bench\r\n\r\n")
	served := make(chan struct{})
	go func() {
		defer close(served)
		buf := make([]byte, len(request))
		for {
			if _, err := io.ReadFull(originPeer, buf); err != nil {
				originPeer.Close()
				return
			}
			originPeer.Write(response)
		}
	}()
	buf := make([]byte, len(response))
	b.SetBytes(int64(len(response)))
	for b.Loop() {
		visitor.Write(request)
		if _, err := io.ReadFull(visitor, buf); err != nil {
			b.Fatal(err)
		}
	}
	visitor.CloseWrite()
	<-served
	<-piped
	visitor.Close()
}

func tcpPair(tb testing.TB) (*net.TCPConn, *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	one, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	two, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	return one.(*net.TCPConn), two.(*net.TCPConn)
}
