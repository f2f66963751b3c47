package forward

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// tcpStream makes a TCP connection a stream.
type tcpStream struct{ *net.TCPConn }

func (s tcpStream) Reset()      { s.SetLinger(0); s.Close() }
func (s tcpStream) Quiet() bool { return true }

var _ link.Stream = tcpStream{}

// exchange moves HTTP responses of one size through a pipe over loopback.
type exchange struct {
	visitor           *net.TCPConn
	request, response []byte
	buf               []byte
	close             func()
}

func newExchange(b *testing.B, size int, inspected bool) *exchange {
	f := New(Config{Inspector: inspect.New(inspect.Limits{}), Activity: make(chan struct{}, 1)})
	ctx, cancel := context.WithCancel(context.Background())
	listed := make(chan struct{})
	go func() { defer close(listed); f.inspector.Run(ctx) }()
	originSide, originPeer := tcpPair(b)
	streamSide, visitor := tcpPair(b)
	yes := inspected
	t := NewTunnel("tun_1", definition.Tunnel{Type: wire.TypeHTTP, LocalIP: "127.0.0.1", LocalPort: 80, Inspect: &yes})
	piped := make(chan struct{})
	go func() {
		defer close(piped)
		f.pipe(&pipe{tunnel: t, route: t.route.Load(), stream: tcpStream{streamSide}, service: originSide}, t.conns.era(), wire.Preface{Kind: wire.StreamHTTP})
	}()
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", size)
	x := &exchange{
		visitor:  visitor,
		request:  []byte("GET /file HTTP/1.1\r\nHost: shop.example.com\r\nUser-Agent: bench\r\n\r\n"),
		response: append([]byte(head), make([]byte, size)...),
	}
	x.buf = make([]byte, len(x.response))
	served := make(chan struct{})
	go func() {
		defer close(served)
		buf := make([]byte, len(x.request))
		for {
			if _, err := io.ReadFull(originPeer, buf); err != nil {
				originPeer.Close()
				return
			}
			originPeer.Write(x.response)
		}
	}()
	x.close = func() {
		visitor.CloseWrite()
		<-served
		<-piped
		visitor.Close()
		cancel()
		<-listed
	}
	return x
}

func (x *exchange) run(b *testing.B, times int) time.Duration {
	begin := time.Now()
	for range times {
		x.visitor.Write(x.request)
		if _, err := io.ReadFull(x.visitor, x.buf); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begin)
}

// BenchmarkForward compares pipes with and without the inspector in one run:
// they take turns, so that what else the machine does weighs on both. The ratio
// is that of the medians.
func BenchmarkForward(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("response=%d", size), func(b *testing.B) {
			plain, inspected := newExchange(b, size, false), newExchange(b, size, true)
			defer plain.close()
			defer inspected.close()
			times := max(1, 1<<20/size)
			var without, with []time.Duration
			b.SetBytes(int64(2 * times * size))
			for b.Loop() {
				without = append(without, plain.run(b, times))
				with = append(with, inspected.run(b, times))
			}
			slices.Sort(without)
			slices.Sort(with)
			b.ReportMetric(float64(with[len(with)/2])/float64(without[len(without)/2]), "ratio")
		})
	}
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
