package inspect

import (
	"context"
	"fmt"
	"syscall"
	"testing"
)

// BenchmarkTap is what the inspector adds to one request and its answer, with
// the listing that follows.
func BenchmarkTap(b *testing.B) {
	request := []byte("GET /file?x=1 HTTP/1.1\r\nHost: shop.example.com\r\nUser-Agent: bench\r\nAccept: */*\r\nX-Forwarded-For: 192.0.2.7\r\n" +
		"X-Forwarded-Host: shop.example.com\r\nX-Forwarded-Proto: https\r\nForwarded: for=192.0.2.7;host=shop.example.com;proto=https\r\n\r\n")
	for _, size := range []int{0, 1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("answer=%d", size), func(b *testing.B) {
			ins := New(Limits{})
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan struct{})
			go func() { defer close(done); ins.Run(ctx) }()
			head := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", size)
			first := append(head, make([]byte, min(size, 4000))...)
			rest := make([]byte, 64<<10)
			t := ins.HTTP(Meta{TunnelID: "tun_1"})
			b.SetBytes(int64(size))
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				t.FromVisitor(request)
				t.FromOrigin(first)
				for left := size - min(size, 4000); left > 0; left -= min(left, len(rest)) {
					t.FromOrigin(rest[:min(left, len(rest))])
				}
			}
			t.Close()
			cancel()
			<-done
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkTapHTTP2 is the same for a request by HTTP/2.
func BenchmarkTapHTTP2(b *testing.B) {
	for _, size := range []int{0, 1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("answer=%d", size), func(b *testing.B) {
			ins := New(Limits{})
			ctx, cancel := context.WithCancel(b.Context())
			done := make(chan struct{})
			go func() { defer close(done); ins.Run(ctx) }()
			t := ins.HTTP2(Meta{TunnelID: "tun_1"})
			visitor, origin := newSide(true), newSide(false)
			part := make([]byte, 16<<10)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			before := cpuTime(b)
			for stream := uint32(1); b.Loop(); stream += 2 {
				visitor.headers(stream, true, append(getOf("/file?x=1"), "user-agent: bench", "accept: */*",
					"x-forwarded-host: shop.example.com", "forwarded: for=192.0.2.7;host=shop.example.com;proto=https")...)
				t.FromVisitor(visitor.Bytes())
				visitor.Reset()
				origin.headers(stream, size == 0, ":status: 200", "content-type: text/plain")
				for left := size; left > 0; left -= min(left, len(part)) {
					origin.WriteData(stream, left <= len(part), part[:min(left, len(part))])
				}
				t.FromOrigin(origin.Bytes())
				origin.Reset()
			}
			t.Close()
			cancel()
			<-done
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime is the process's so far, in nanoseconds: on a busy machine the clock
// on the wall tells of the neighbours.
func cpuTime(b *testing.B) int64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return use.Utime.Nano() + use.Stime.Nano()
}
