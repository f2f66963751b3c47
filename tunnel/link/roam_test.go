package link

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/simnet"
)

// download moves size bytes from server to client in pieces, calls event
// between them, and returns the longest pause between two reads.
func download(t *testing.T, server, client Session, size int64, events int, event func(i int)) time.Duration {
	t.Helper()
	out, in := connect(t, server, client)
	sent, received := sha256.New(), sha256.New()
	var writer sync.WaitGroup
	writer.Go(func() {
		io.CopyBuffer(io.MultiWriter(onlyWriter{out}, sent), io.LimitReader(rand.NewChaCha8([32]byte{7}), size), make([]byte, 64<<10))
		out.CloseWrite()
	})
	var got, stall int64
	last, done, buf := time.Now(), 0, make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		now := time.Now()
		stall = max(stall, int64(now.Sub(last)))
		last = now
		received.Write(buf[:n])
		got += int64(n)
		if done < events && got > size*int64(done+1)/int64(events+1) {
			event(done)
			done++
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes and %d changes: %v", got, done, err)
		}
	}
	writer.Wait()
	if got != size || !bytes.Equal(sent.Sum(nil), received.Sum(nil)) {
		t.Errorf("got %d bytes, want %d and the same sum", got, size)
	}
	if done != events {
		t.Errorf("%d changes happened, want %d", done, events)
	}
	t.Logf("longest pause %v", time.Duration(stall))
	return time.Duration(stall)
}

// TestDownloadSurvivesChangesOfAddress changes the agent's address in the two
// ways that it can: the system says so, or nobody does.
func TestDownloadSurvivesChangesOfAddress(t *testing.T) {
	path := simnet.Path{Delay: 10 * time.Millisecond, Rate: 5 << 20}
	t.Run("the binding of a NAT changes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSimulated(t, path, ListenConfig{})
			defer s.close()
			var socket *simnet.Conn
			listen := s.dial.ListenPacket
			s.dial.ListenPacket = func(ctx context.Context, relay netip.AddrPort) (net.PacketConn, error) {
				c, err := listen(ctx, relay)
				socket = c.(*simnet.Conn)
				return c, err
			}
			client, server := dialDTLSPair(t, s.listener, s.dial)
			stall := download(t, server, client, 40<<20, 5, func(i int) {
				host := fmt.Sprintf("10.0.1.%d", i)
				s.network.Join(host, "10.0.0.1", s.there, s.back)
				if err := socket.Rebind(host + ":1000"); err != nil {
					t.Error(err)
				}
			})
			if stall > time.Second {
				t.Errorf("stalled for %v, want at most 1s", stall)
			}
			client.Close("over")
		})
	})
	t.Run("the old path is dead", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSimulated(t, path, ListenConfig{})
			defer s.close()
			there, back, host := s.there, s.back, 0
			s.network.Join("10.0.1.0", "10.0.0.1", there, back)
			s.dial.ListenPacket = func(context.Context, netip.AddrPort) (net.PacketConn, error) {
				return s.network.Listen(fmt.Sprintf("10.0.1.%d:1000", host))
			}
			client, server := dialDTLSPair(t, s.listener, s.dial)
			stall := download(t, server, client, 40<<20, 5, func(i int) {
				for _, l := range []*simnet.Link{there, back} {
					l.Change(func(p *simnet.Path) { p.Blocked = true })
				}
				there, back = s.network.Pair(path)
				host++
				s.network.Join(fmt.Sprintf("10.0.1.%d", host), "10.0.0.1", there, back)
			})
			if stall > time.Second {
				t.Errorf("stalled for %v, want at most 1s", stall)
			}
			client.Close("over")
		})
	})
}
