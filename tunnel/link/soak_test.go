package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/require"
	"adit/internal/simnet"
)

// soakTime is in virtual time. ADIT_SOAK makes it longer: 30m, say.
func soakTime(t *testing.T) time.Duration {
	if text := os.Getenv("ADIT_SOAK"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("ADIT_SOAK: %v", err)
		}
		return d
	}
	if require.Strict() && !slowed {
		return time.Minute
	}
	return 20 * time.Second
}

// soakSeed draws what happens in a soak. ADIT_SOAK_SEED is another one.
func soakSeed(t *testing.T) uint64 {
	text := os.Getenv("ADIT_SOAK_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("ADIT_SOAK_SEED: %v", err)
	}
	return seed
}

// TestSoak runs random streams over a network that loses, reorders and doubles
// packets while the agent's address changes, and checks every byte.
func TestSoak(t *testing.T) {
	length, seed := soakTime(t), soakSeed(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSimulated(t, simnet.Path{
			Delay: 15 * time.Millisecond, Jitter: 5 * time.Millisecond, Rate: 3 << 20,
			Loss: 0.01, Reorder: 0.02, Duplicate: 0.005,
		}, ListenConfig{})
		defer s.close()
		var socket atomic.Pointer[simnet.Conn]
		listen := s.dial.ListenPacket
		s.dial.ListenPacket = func(ctx context.Context, relay netip.AddrPort) (net.PacketConn, error) {
			c, err := listen(ctx, relay)
			if err != nil {
				return nil, err
			}
			socket.Store(c.(*simnet.Conn))
			return c, nil
		}
		client, server := dialDTLSPair(t, s.listener, s.dial)
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()

		var group sync.WaitGroup
		group.Go(func() { echoStreams(server, &group) })
		var streams, moved, total atomic.Int64
		for worker := range 6 {
			group.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(worker), seed))
				for ctx.Err() == nil {
					n, err := soakStream(client, rng)
					if err != nil {
						t.Errorf("worker %d, stream of %d bytes: %v", worker, n, err)
						cancel()
						return
					}
					streams.Add(1)
					total.Add(n)
				}
			})
		}
		group.Go(func() { // the address changes every few seconds
			for i := 0; ; i++ {
				select {
				case <-time.After(4 * time.Second):
				case <-ctx.Done():
					return
				}
				host := fmt.Sprintf("10.%d.%d.9", 1+i/250, i%250)
				s.network.Join(host, "10.0.0.1", s.there, s.back)
				if err := socket.Load().Rebind(host + ":9"); err != nil {
					t.Error(err)
				}
				moved.Add(1)
			}
		})
		<-ctx.Done()
		stats := client.Stats()
		time.Sleep(30 * time.Second) // the streams under way come to their end
		client.Close("over")
		group.Wait()
		t.Logf("seed %d, %v: %d streams, %d bytes there and back, %d changes of address, %d of %d packets lost",
			seed, length, streams.Load(), total.Load(), moved.Load(), stats.PacketsLost, stats.PacketsSent)
		if streams.Load() < int64(length/time.Second) {
			t.Errorf("only %d streams in %v", streams.Load(), length)
		}
	})
}

// echoStreams answers every stream with itself until the session ends.
func echoStreams(server Session, group *sync.WaitGroup) {
	for {
		s, err := server.AcceptStream(context.Background())
		if err != nil {
			return
		}
		group.Go(func() {
			defer s.Close()
			io.Copy(s, s)
			s.CloseWrite()
		})
	}
}

// soakStream sends a random number of bytes and checks that they come back. Some
// streams are given up on the way.
func soakStream(client Session, rng *rand.Rand) (int64, error) {
	stream, err := client.OpenStream(context.Background())
	if err != nil {
		return 0, err
	}
	defer stream.Close()
	size := int64(rng.IntN(1000))
	if rng.IntN(4) == 0 {
		size = int64(rng.IntN(2 << 20))
	}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], rng.Uint64())
	if rng.IntN(10) == 0 { // given up; what comes back is never read, so that the echo may stop taking more
		stream.SetWriteDeadline(time.Now().Add(3 * time.Second))
		stream.Write(make([]byte, size))
		stream.Reset()
		return size, nil
	}
	stream.SetDeadline(time.Now().Add(time.Minute)) // from the last progress on
	sent := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(lively{stream}, io.LimitReader(rand.NewChaCha8(seed), size), make([]byte, 20_000))
		sent <- errors.Join(err, stream.CloseWrite())
	}()
	want, buf, wanted := rand.NewChaCha8(seed), make([]byte, 17_000), make([]byte, 17_000)
	var got int64
	for {
		n, err := stream.Read(buf)
		stream.SetReadDeadline(time.Now().Add(time.Minute))
		want.Read(wanted[:n])
		if !bytes.Equal(buf[:n], wanted[:n]) {
			return size, fmt.Errorf("other bytes than were sent, after %d", got)
		}
		got += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return size, fmt.Errorf("read after %d bytes: %w", got, err)
		}
	}
	if got != size {
		return size, fmt.Errorf("got %d bytes back", got)
	}
	return size, <-sent
}

// lively writes with a deadline that each piece renews.
type lively struct{ Stream }

func (l lively) Write(b []byte) (int, error) {
	n, err := l.Stream.Write(b)
	l.SetWriteDeadline(time.Now().Add(time.Minute))
	return n, err
}
