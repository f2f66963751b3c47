package record

import (
	"runtime"
	"sync/atomic"
	"testing"
)

const benchPayload = 1200

func benchHalves(b *testing.B, s Suite) (seal, open *half) {
	b.Helper()
	secret, random, cid := make([]byte, 48), make([]byte, 32), make([]byte, cidSize)
	seal, _, err := deriveHalves(s, secret, random, random, cid, cid)
	if err != nil {
		b.Fatal(err)
	}
	open, _, _ = deriveHalves(s, secret, random, random, cid, cid)
	return seal, open
}

func BenchmarkSeal(b *testing.B) {
	for _, s := range []Suite{AES128GCM, AES256GCM, ChaCha20Poly1305} {
		b.Run(s.String(), func(b *testing.B) {
			h, _ := benchHalves(b, s)
			p := make([]byte, h.head+benchPayload+h.tail)
			b.SetBytes(benchPayload)
			b.ReportAllocs()
			for i := range b.N {
				h.seal(p, typeApplication, epoch1|uint64(i))
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, s := range []Suite{AES128GCM, AES256GCM, ChaCha20Poly1305} {
		b.Run(s.String(), func(b *testing.B) {
			seal, open := benchHalves(b, s)
			p := make([]byte, seal.head+benchPayload+seal.tail)
			seal.seal(p, typeApplication, epoch1)
			work := make([]byte, len(p))
			b.SetBytes(benchPayload)
			b.ReportAllocs()
			for b.Loop() {
				copy(work, p)
				r, _, _ := parse(work, cidSize)
				if _, _, ok := open.open(r); !ok {
					b.Fatal("not opened")
				}
			}
		})
	}
}

// BenchmarkTransfer moves 1200-byte payloads over UDP on loopback, both ends in
// this process. The sender keeps at most a window under way, as streams do.
func BenchmarkTransfer(b *testing.B) {
	for _, way := range []struct {
		name string
		off  bool
	}{{"gso", false}, {"nogso", true}} {
		b.Run(way.name, func(b *testing.B) {
			ccfg, scfg := clientConfig(), serverConfig()
			ccfg.NoOffload, scfg.NoOffload = way.off, way.off
			c, s := pair(b, udpSocket(b), udpSocket(b), ccfg, scfg)
			transfer(b, c, s)
		})
	}
}

func transfer(b *testing.B, from, to *Conn) {
	const batch, window = 48, 1024
	head, tail := from.Room()
	size := head + benchPayload + tail
	arena := make([]byte, batch*size)
	packets := make([][]byte, batch)
	for i := range packets {
		packets[i] = arena[i*size : (i+1)*size]
	}
	var got atomic.Uint64 // number of the newest that came, and one
	var count atomic.Uint64
	wake := make(chan struct{}, 1)
	go func() {
		into := make([]Packet, 64)
		for {
			n, err := to.Receive(into)
			if err != nil {
				return
			}
			count.Add(uint64(n))
			got.Store(into[n-1].Number + 1)
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	}()
	go func() { // the other direction is idle but must be served
		into := make([]Packet, 4)
		for {
			if _, err := from.Receive(into); err != nil {
				return
			}
		}
	}()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime()
	b.SetBytes(benchPayload)
	b.ResetTimer()
	first := from.NextNumber()
	var sent uint64
	for sent < uint64(b.N) {
		for sent+first > got.Load()+window {
			<-wake
		}
		n := min(batch, b.N-int(sent))
		for _, p := range packets[:n] {
			p[head] = 0 // ciphertext of the last round may begin as our own messages do
		}
		if _, err := from.Send(packets[:n]); err != nil {
			b.Fatal(err)
		}
		sent += uint64(n)
	}
	for got.Load() < first+sent {
		<-wake // the window is far below what a socket holds: nothing is lost
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	bytes := float64(b.N) * benchPayload
	b.ReportMetric(float64(cpuTime()-cpu)/bytes, "cpu-ns/B")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(b.N), "allocs/pkt")
	b.ReportMetric(float64(sent-count.Load())/float64(sent), "lost")
	b.ReportMetric(float64(to.Dropped()), "dropped")
}

// BenchmarkSessions reports what a session costs a listener: the time of a
// handshake, both ends, and the memory of both ends of an idle session.
func BenchmarkSessions(b *testing.B) {
	cfg := serverConfig()
	l := startListener(b, udpSocket(b), cfg)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before := heap()
	keep := make([]*Conn, 0, 2*b.N)
	for range b.N {
		c, s := connect(b, l, udpSocket(b), clientConfig())
		send(b, c, "first")
		if _, err := s.Receive(make([]Packet, 1)); err != nil {
			b.Fatal(err)
		}
		keep = append(keep, c, s)
	}
	b.StopTimer()
	b.ReportMetric(float64(int64(heap()-before))/float64(b.N), "B/session")
	runtime.KeepAlive(keep)
}
