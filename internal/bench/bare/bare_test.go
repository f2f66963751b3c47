package bare

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"adit/internal/udpbatch"
)

const patience = 30 * time.Second

var networks = []string{"tcp", "tls", "udp"}

// start has a relay, an agent and an origin until the test ends, and returns
// where visitors go.
func start(t *testing.T, network string, serve func(net.Conn)) Addrs {
	t.Helper()
	origin, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	echo, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	relay, err := Listen(t.Context(), network)
	if err != nil {
		t.Fatal(err)
	}
	at := relay.Addrs()
	ctx, stop := context.WithCancel(context.Background())
	ready := make(chan struct{})
	agent := Agent{
		Network: network, Relay: at.Agent, Ready: func() { close(ready) },
		Origin: Addrs{TCP: origin.Addr().String(), UDP: echo.LocalAddr().String()},
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		stop()
		origin.Close()
		echo.Close()
		wg.Wait()
	})
	for name, run := range map[string]func(context.Context) error{"the relay": relay.Serve, "the agent": agent.Run} {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Go(func() {
		for b := make([]byte, mostDatagram); ; {
			n, from, err := echo.ReadFrom(b)
			if err != nil {
				return
			}
			echo.WriteTo(b[:n], from)
		}
	})
	wg.Go(func() {
		for {
			conn, err := origin.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(patience))
				serve(conn)
			})
		}
	})
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("the agent does not come")
	}
	return at
}

func dial(t *testing.T, network, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// noise is n bytes that are the same for each n.
func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)}).Read(b)
	return b
}

func TestBytesComeThroughWhole(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			at := start(t, network, func(conn net.Conn) {
				all, err := io.ReadAll(conn) // until the visitor has sent all
				if err != nil {
					t.Error(err)
				}
				conn.Write(all)
			})
			size := 1 << 20
			if network == "udp" {
				size = 20 << 10 // what sockets have room for everywhere
			}
			var wg sync.WaitGroup
			for i := range 6 {
				conn := dial(t, "tcp", at.TCP)
				wg.Go(func() {
					sent := noise(size + i)
					if _, err := conn.Write(sent); err != nil {
						t.Error(err)
					}
					conn.(*net.TCPConn).CloseWrite()
					if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, sent) {
						t.Errorf("visitor %d: got %d bytes, %v, want the %d that were sent", i, len(got), err, len(sent))
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestManySmallRequests(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			at := start(t, network, func(conn net.Conn) { io.Copy(conn, conn) })
			var wg sync.WaitGroup
			for i := range 16 {
				conn := dial(t, "tcp", at.TCP)
				wg.Go(func() {
					for k := range 100 {
						sent := noise(10 + i + k)
						conn.Write(sent)
						got := make([]byte, len(sent))
						if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
							t.Errorf("visitor %d, request %d: %v", i, k, err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestDatagramsComeBackToTheirVisitor(t *testing.T) {
	for _, network := range networks {
		t.Run(network, func(t *testing.T) {
			at := start(t, network, nil)
			var wg sync.WaitGroup
			for i := range 4 {
				conn := dial(t, "udp", at.UDP)
				wg.Go(func() {
					buf := make([]byte, mostDatagram)
					for _, size := range []int{0, 1, 200, 1400, mostDatagram} {
						sent := noise(size)
						if size > 0 {
							sent[0] = byte(i)
						}
						var all [][]byte
						for range 3 {
							conn.Write(sent)
						}
						for range 3 {
							n, err := conn.Read(buf)
							if err != nil {
								t.Errorf("visitor %d: %v", i, err)
								return
							}
							all = append(all, slices.Clone(buf[:n]))
						}
						for _, got := range all {
							if !bytes.Equal(got, sent) {
								t.Errorf("visitor %d: got %d bytes, want the %d that were sent", i, len(got), size)
							}
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestAVisitorWhoLeavesEndsItsOrigin has an origin that only writes, and would
// not see that nobody reads.
func TestAVisitorWhoLeavesEndsItsOrigin(t *testing.T) {
	ended := make(chan error, 1)
	at := start(t, "tcp", func(conn net.Conn) {
		var err error
		for b := make([]byte, 64<<10); err == nil; {
			_, err = conn.Write(b)
		}
		ended <- err
	})
	conn := dial(t, "tcp", at.TCP)
	conn.Write([]byte("go"))
	if _, err := io.ReadFull(conn, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	var timeout net.Error
	if err := <-ended; errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the origin still writes")
	}
}

func TestAVisitorIsToldThatThereIsNoOrigin(t *testing.T) {
	relay, err := Listen(t.Context(), "tcp")
	if err != nil {
		t.Fatal(err)
	}
	nobody, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { relay.Serve(ctx) })
	wg.Go(func() {
		Agent{Network: "tcp", Relay: relay.Addrs().Agent, Origin: Addrs{TCP: nobody.Addr().String()}}.Run(ctx)
	})
	conn := dial(t, "tcp", relay.Addrs().TCP)
	conn.Write([]byte("hello"))
	var timeout net.Error
	if n, err := conn.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("got %d bytes and %v, want an end", n, err)
	}
}

// TestTheRelayEndsWithItsAgent is about a link that is lost.
func TestTheRelayEndsWithItsAgent(t *testing.T) {
	relay, err := Listen(t.Context(), "tcp")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- relay.Serve(t.Context()) }()
	link := dial(t, "tcp", relay.Addrs().Agent)
	conn := dial(t, "tcp", relay.Addrs().TCP)
	conn.Write([]byte("hello"))
	if _, err := io.ReadFull(link, make([]byte, headerSize+5)); err != nil {
		t.Fatal(err)
	}
	link.Close()
	if err := <-served; !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want %v", err, io.EOF)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a visitor was not let go")
	}
}

// TestFramesComeInPieces reads a link byte by byte.
func TestFramesComeInPieces(t *testing.T) {
	visitors, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer visitors.Close()
	visitor := dial(t, "udp", visitors.LocalAddr().String())
	sent := []byte("one datagram")
	var in []byte
	for _, id := range []uint32{9, 7} { // of 9 nothing is known
		in = binary.LittleEndian.AppendUint32(in, id)
		in = binary.LittleEndian.AppendUint32(in, kindDatagram|uint32(len(sent))<<8)
		in = append(in, sent...)
	}
	in = append(in, make([]byte, headerSize)...)
	putHeader(in[len(in)-headerSize:], 3, kindData, 0)
	e := newEnd(visitor) // its link is not this
	e.link = struct {
		io.Reader
		io.WriteCloser
	}{iotest.OneByteReader(bytes.NewReader(in)), nil}
	e.most = 100
	e.flows[7] = flow{udpbatch.New(visitors, udpbatch.Options{}), udpbatch.AddrOf(visitor.LocalAddr())}
	if err := e.receive(); err != io.EOF {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	if n, err := visitor.Read(got); err != nil || !bytes.Equal(got[:n], sent) {
		t.Errorf("got %q, %v, want %q", got[:n], err, sent)
	}
}
