//go:build unix

package link

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"github.com/pion/dtls/v3"
	"github.com/pion/sctp"
	"github.com/quic-go/quic-go"
)

// packetPayload is what allocs/pkt counts as one packet, over every transport alike.
const packetPayload = 1200

// BenchmarkBulk moves one bulk stream over loopback, both ends in this process:
// adit's transports, and for comparison plain TCP, yamux over TLS, QUIC, and
// SCTP over DTLS as WebRTC data channels do it. cpu-ns/B is of both ends
// together.
func BenchmarkBulk(b *testing.B) {
	for _, bench := range []struct {
		name string
		dial func(b *testing.B) (io.Writer, io.Reader)
	}{
		{"tcp", bulkTCP},
		{"tls-yamux", bulkYamux},
		{"quic", bulkQUIC},
		{"pion-sctp", bulkSCTP},
		{"dtls", func(b *testing.B) (io.Writer, io.Reader) { return bulkOwn(b, DTLS, false) }},
		{"dtls-nogso", func(b *testing.B) (io.Writer, io.Reader) { return bulkOwn(b, DTLS, true) }},
		{"tls", func(b *testing.B) (io.Writer, io.Reader) { return bulkOwn(b, TLS, false) }},
	} {
		b.Run(bench.name, func(b *testing.B) { bulk(b, bench.dial) })
	}
}

func bulk(b *testing.B, dial func(b *testing.B) (io.Writer, io.Reader)) {
	const block = 1 << 20
	w, r := dial(b)
	received := make(chan error, 1)
	total := int64(b.N) * block
	warm := int64(16 * block) // windows grow, congestion control finds the path
	go func() {
		buf := make([]byte, 256<<10)
		_, err := io.CopyBuffer(onlyWriter{io.Discard}, io.LimitReader(onlyReader{r}, warm), buf)
		received <- err
		if err == nil {
			_, err = io.CopyBuffer(onlyWriter{io.Discard}, io.LimitReader(onlyReader{r}, total), buf)
			received <- err
		}
	}()
	piece := make([]byte, 32<<10) // as a forwarder writes
	send := func(n int64) {
		for ; n > 0; n -= int64(len(piece)) {
			if _, err := w.Write(piece); err != nil {
				b.Fatalf("write: %v", err)
			}
		}
		if err := <-received; err != nil {
			b.Fatalf("read: %v", err)
		}
	}
	send(warm)
	b.SetBytes(block)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime(b)
	b.ResetTimer()
	send(total)
	b.StopTimer()
	cpu = cpuTime(b) - cpu
	runtime.ReadMemStats(&after)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(total)/1e6/b.Elapsed().Seconds(), "MB/s")
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(total), "cpu-ns/B")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/(float64(total)/packetPayload), "allocs/pkt")
}

// cpuTime is what this process has used of the processors.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func benchAuthority(b *testing.B) (tls.Certificate, [32]byte) {
	b.Helper()
	authority, err := NewAuthority()
	if err != nil {
		b.Fatal(err)
	}
	cert, err := authority.Issue("localhost")
	if err != nil {
		b.Fatal(err)
	}
	return cert, authority.Fingerprint()
}

// check ends the benchmark on an error.
func check[T any](b *testing.B) func(v T, err error) T {
	return func(v T, err error) T {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
}

func bulkOwn(b *testing.B, transport Transport, noOffload bool) (io.Writer, io.Reader) {
	cert, fingerprint := benchAuthority(b)
	l := check[*Listener](b)(Listen(ListenConfig{Addr: "127.0.0.1:0", Certificate: cert, NoOffload: noOffload}))
	b.Cleanup(func() { l.Close() })
	client := check[Session](b)(Dial(b.Context(), DialConfig{Relay: l.Addr().String(), Fingerprint: fingerprint, Transport: transport, NoOffload: noOffload}))
	b.Cleanup(func() { client.Close("over") })
	server := check[Session](b)(l.Accept(b.Context()))
	out := check[Stream](b)(client.OpenStream(b.Context()))
	check[int](b)(out.Write([]byte{0}))
	in := check[Stream](b)(server.AcceptStream(b.Context()))
	check[int](b)(in.Read(make([]byte, 1)))
	return out, in
}

func tcpPair(b *testing.B) (net.Conn, net.Conn) {
	l := check[net.Listener](b)(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	client := check[net.Conn](b)(net.Dial("tcp", l.Addr().String()))
	server := check[net.Conn](b)(l.Accept())
	b.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func bulkTCP(b *testing.B) (io.Writer, io.Reader) { return tcpPair(b) }

func bulkYamux(b *testing.B) (io.Writer, io.Reader) {
	cert, fingerprint := benchAuthority(b)
	c, s := tcpPair(b)
	server := tls.Server(s, tlsServerConfig(func() (*tls.Certificate, error) { return &cert, nil }, nil))
	client := tls.Client(c, tlsClientConfig(fingerprint, alpn, nil))
	cfg := yamux.DefaultConfig()
	cfg.MaxStreamWindowSize = 6 << 20
	cfg.LogOutput = io.Discard
	from := check[*yamux.Session](b)(yamux.Client(client, cfg))
	to := check[*yamux.Session](b)(yamux.Server(server, cfg))
	b.Cleanup(func() { from.Close(); to.Close() })
	out := check[*yamux.Stream](b)(from.OpenStream())
	in := check[*yamux.Stream](b)(to.AcceptStream())
	return out, in
}

func bulkQUIC(b *testing.B) (io.Writer, io.Reader) {
	cert, fingerprint := benchAuthority(b)
	cfg := &quic.Config{
		InitialStreamReceiveWindow: 6 << 20, MaxStreamReceiveWindow: 16 << 20,
		InitialConnectionReceiveWindow: 8 << 20, MaxConnectionReceiveWindow: 32 << 20,
	}
	l := check[*quic.Listener](b)(quic.ListenAddr("127.0.0.1:0", tlsServerConfig(func() (*tls.Certificate, error) { return &cert, nil }, nil), cfg))
	b.Cleanup(func() { l.Close() })
	client := check[*quic.Conn](b)(quic.DialAddr(b.Context(), l.Addr().String(), tlsClientConfig(fingerprint, alpn, nil), cfg))
	server := check[*quic.Conn](b)(l.Accept(b.Context()))
	b.Cleanup(func() { client.CloseWithError(0, "over") })
	out := check[*quic.Stream](b)(client.OpenStreamSync(b.Context()))
	check[int](b)(out.Write([]byte{0}))
	in := check[*quic.Stream](b)(server.AcceptStream(b.Context()))
	check[int](b)(in.Read(make([]byte, 1)))
	return out, in
}

func bulkSCTP(b *testing.B) (io.Writer, io.Reader) {
	cert, _ := benchAuthority(b)
	serverSocket := check[net.PacketConn](b)(net.ListenPacket("udp", "127.0.0.1:0"))
	clientSocket := check[net.PacketConn](b)(net.ListenPacket("udp", "127.0.0.1:0"))
	server := check[*dtls.Conn](b)(dtls.ServerWithOptions(serverSocket, clientSocket.LocalAddr(), dtls.WithCertificates(cert)))
	client := check[*dtls.Conn](b)(dtls.ClientWithOptions(clientSocket, serverSocket.LocalAddr(), dtls.WithInsecureSkipVerify(true)))
	b.Cleanup(func() { client.Close(); server.Close() })
	shaken := make(chan error, 1)
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	go func() { shaken <- server.HandshakeContext(ctx) }()
	if err := client.HandshakeContext(ctx); err != nil {
		b.Fatal(err)
	}
	if err := <-shaken; err != nil {
		b.Fatal(err)
	}
	const buffer = 4 << 20
	config := func(conn net.Conn) sctp.Config {
		return sctp.Config{NetConn: conn, BlockWrite: true, MaxReceiveBufferSize: buffer, LoggerFactory: quiet{}}
	}
	accepted := make(chan *sctp.Association, 1)
	go func() {
		a, err := sctp.ServerWithOptions(config(server))
		if err != nil {
			b.Error(err)
		}
		accepted <- a
	}()
	from := check[*sctp.Association](b)(sctp.ClientWithOptions(config(client)))
	to := <-accepted
	b.Cleanup(func() { from.Close(); to.Close() })
	out := check[*sctp.Stream](b)(from.OpenStream(1, sctp.PayloadTypeWebRTCBinary))
	check[int](b)(out.Write([]byte{0}))
	in := check[*sctp.Stream](b)(to.AcceptStream())
	check[int](b)(in.Read(make([]byte, 1)))
	return out, in
}
