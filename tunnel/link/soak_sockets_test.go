package link

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/internal/simnet"
)

// nat stands between an agent and a relay, all on loopback: a socket in front,
// another behind that changes, and a simulated network in real time between
// them that loses, delays, reorders and doubles.
type nat struct {
	t           *testing.T
	relay       *net.UDPAddr
	network     *simnet.Network
	there, back *simnet.Link
	inner       [2]*simnet.Conn // of the agent's side, of the relay's
	front       *net.UDPConn
	agent       atomic.Pointer[net.UDPAddr] // where the agent was heard from last
	group       sync.WaitGroup

	mu     sync.Mutex
	behind *net.UDPConn
	closed bool
}

func newNAT(t *testing.T, relay net.Addr, path simnet.Path, seed uint64) *nat {
	t.Helper()
	n := &nat{t: t, relay: relay.(*net.UDPAddr), network: simnet.New(seed)}
	n.there, n.back = n.network.Pair(path)
	n.network.Join("10.0.0.1", "10.0.0.2", n.there, n.back)
	n.inner[0], _ = n.network.Listen("10.0.0.1:1")
	n.inner[1], _ = n.network.Listen("10.0.0.2:1")
	front, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	n.front = front
	if err := n.move(1); err != nil {
		t.Fatal(err)
	}
	n.group.Go(func() { // agent → network
		buf := make([]byte, 64<<10)
		for {
			size, from, err := n.front.ReadFromUDP(buf)
			if err != nil {
				return
			}
			n.agent.Store(from)
			n.inner[0].WriteTo(buf[:size], n.inner[1].LocalAddr())
		}
	})
	n.group.Go(func() { // network → relay
		n.pump(n.inner[1], func(b []byte) {
			n.mu.Lock()
			behind := n.behind
			n.mu.Unlock()
			behind.WriteToUDP(b, n.relay)
		})
	})
	n.group.Go(func() { // network → agent
		n.pump(n.inner[0], func(b []byte) { n.front.WriteToUDP(b, n.agent.Load()) })
	})
	return n
}

func (n *nat) pump(from *simnet.Conn, to func([]byte)) {
	buf := make([]byte, 64<<10)
	for {
		size, _, err := from.ReadFrom(buf)
		if err != nil {
			return
		}
		to(buf[:size])
	}
}

// move gives the agent another address, as the relay sees it.
func (n *nat) move(i int) error {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, byte(1+i/250), byte(1+i%250))})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return c.Close()
	}
	if n.behind != nil {
		n.behind.Close()
	}
	n.behind = c
	n.group.Go(func() { // relay → network
		buf := make([]byte, 64<<10)
		for {
			size, _, err := c.ReadFromUDP(buf)
			if err != nil {
				return
			}
			n.inner[1].WriteTo(buf[:size], n.inner[0].LocalAddr())
		}
	})
	return nil
}

func (n *nat) close() {
	n.mu.Lock()
	n.closed = true
	n.behind.Close()
	n.mu.Unlock()
	n.front.Close()
	n.network.Close()
	n.group.Wait()
}

// held is what the process holds once the collector has run, and its goroutines.
func held() (bytes int64, goroutines int) { return memory(), runtime.NumGoroutine() }

// TestSoakOverSockets is TestSoak in real time and over the system's sockets,
// with a NAT between that changes the address, loses more at times, and falls
// silent. ADIT_SOAK_SOCKETS is for how long, and ADIT_SOAK_SEED draws the rest.
func TestSoakOverSockets(t *testing.T) {
	length, seed := 4*time.Second, soakSeed(t)
	if text := os.Getenv("ADIT_SOAK_SOCKETS"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("ADIT_SOAK_SOCKETS: %v", err)
		}
	}
	l, fingerprint := testListener(t, ListenConfig{})
	defer l.Close()
	n := newNAT(t, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.Addr().(*net.TCPAddr).Port}, simnet.Path{
		Delay: 10 * time.Millisecond, Jitter: 3 * time.Millisecond, Rate: 4 << 20,
		Loss: 0.01, Reorder: 0.02, Duplicate: 0.005,
	}, seed)
	defer n.close()
	client, err := Dial(testContext(t), DialConfig{Relay: n.front.LocalAddr().String(), Fingerprint: fingerprint, Transport: DTLS, NoWatch: true})
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	server, err := l.Accept(testContext(t))
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	var answers sync.WaitGroup
	answers.Go(func() { echoStreams(server, &answers) })
	base, goroutines := held()

	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var group sync.WaitGroup
	var streams, moved, silent, total atomic.Int64
	for worker := range 6 {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), seed))
			for ctx.Err() == nil {
				size, err := soakStream(client, rng)
				if err != nil {
					t.Errorf("worker %d, stream of %d bytes: %v", worker, size, err)
					cancel()
					return
				}
				streams.Add(1)
				total.Add(size)
			}
		})
	}
	group.Go(func() {
		rng := rand.New(rand.NewPCG(seed, 99))
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(min(length/16, 2*time.Second) + time.Duration(rng.Int64N(int64(min(length/8, 4*time.Second))))):
			}
			switch rng.IntN(4) {
			case 0: // bad radio for a while
				n.there.Change(func(p *simnet.Path) { p.Loss = rng.Float64() / 8 })
				n.back.Change(func(p *simnet.Path) { p.Loss = rng.Float64() / 8 })
			case 1: // nothing at all, for less than the session's patience
				for _, l := range []*simnet.Link{n.there, n.back} {
					l.Change(func(p *simnet.Path) { p.Blocked = true })
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(rng.Int64N(int64(1500 * time.Millisecond)))):
				}
				for _, l := range []*simnet.Link{n.there, n.back} {
					l.Change(func(p *simnet.Path) { p.Blocked, p.Loss = false, 0.01 })
				}
				silent.Add(1)
			default:
				if err := n.move(2 + int(moved.Add(1))%60_000); err != nil {
					t.Errorf("another address: %v", err)
				}
			}
		}
	})
	// What is held after the first tenth is the measure for the end.
	var warm int64
	select {
	case <-ctx.Done():
	case <-time.After(length / 10):
		warm, _ = held()
	}
	group.Wait()
	stats := client.Stats()
	wait(t, "the streams' end", patience, func() bool { return client.Stats().Streams == 0 && server.Stats().Streams == 0 })
	var last int64
	var left int
	wait(t, "the streams' goroutines' end", patience, func() bool { last, left = held(); return left <= goroutines })
	t.Logf("seed %d, %v: %d streams, %d bytes there and back, %d changes of address, %d times silent, %d of %d packets lost; %d KiB held before, %d after a tenth, %d at the end; %d goroutines before, %d at the end",
		seed, length, streams.Load(), total.Load(), moved.Load(), silent.Load(), stats.PacketsLost, stats.PacketsSent, base>>10, warm>>10, last>>10, goroutines, left)
	if allowed := max(warm, base) + 24<<20; last > allowed {
		t.Errorf("holds %d bytes at the end, want at most %d", last, allowed)
	}
	if streams.Load() == 0 {
		t.Error("no stream was echoed")
	}
	client.Close("over")
	server.Close("over")
	answers.Wait()
}
