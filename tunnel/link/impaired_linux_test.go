package link

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/sys/unix"

	"adit/internal/netlab"
	"adit/internal/require"
)

// The test of impaired networks runs this program twice more, each in a network
// namespace of its own: near downloads from far over a bad path of
// internal/netlab.

// cell is one measurement.
type cell struct {
	Peer    string // dtls, tls, tcp-cubic, tcp-bbr, quic
	Loss    float64
	Reorder float64
	Warm    time.Duration // left out at the start
	Length  time.Duration
	// Requests measures that many small requests instead, first alone and then
	// beside a bulk stream of the same session.
	Requests int

	Authority []byte // of the far end, filled in by run
}

const (
	cellEnv = "ADIT_TEST_LINK_CELL"
	farAddr = netlab.FarAddr + ":4433"
	// linkRate is what the link moves in a second, in UDP payload of full
	// packets: 100 Mbit/s, as in the tests in virtual time.
	linkRate = 12_500_000
)

// path is 50 ms and 100 Mbit/s. IP packets of 1,500 bytes carry 1,472 of UDP payload.
func (c cell) path() netlab.Path {
	return netlab.Path{
		RTT: 50 * time.Millisecond, Rate: linkRate * 1500 / 1472, Buffer: 250 * time.Millisecond,
		Loss: c.Loss, Reorder: c.Reorder,
	}
}

// endRole is one end's part of the measurement.
func endRole(role func(ctx context.Context, c cell) error) error {
	var c cell
	if err := json.Unmarshal([]byte(os.Getenv(cellEnv)), &c); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.Warm+c.Length+time.Minute)
	defer cancel()
	return role(ctx, c)
}

// congestion makes sockets use a congestion controller of the system's.
func congestion(name string) func(network, address string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) error {
		var err error
		if controlErr := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
		}); controlErr != nil {
			return controlErr
		}
		return err
	}
}

// farRole sends without end to whoever comes.
func farRole(ctx context.Context, c cell) error {
	authority, err := ParseAuthority(c.Authority)
	if err != nil {
		return err
	}
	cert, err := authority.Issue("far")
	if err != nil {
		return err
	}
	var w io.Writer
	switch kind, control, _ := strings.Cut(c.Peer, "-"); kind {
	case "tcp":
		l, err := (&net.ListenConfig{Control: congestion(control)}).Listen(ctx, "tcp", farAddr)
		if err != nil {
			return err
		}
		fmt.Println("ready")
		if w, err = l.Accept(); err != nil {
			return err
		}
	case "quic":
		l, err := quic.ListenAddr(farAddr, tlsServerConfig(func() (*tls.Certificate, error) { return &cert, nil }, nil), quicConfig())
		if err != nil {
			return err
		}
		fmt.Println("ready")
		conn, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		if w, err = conn.OpenStreamSync(ctx); err != nil {
			return err
		}
	default:
		l, err := Listen(ListenConfig{Addr: farAddr, Certificate: cert})
		if err != nil {
			return err
		}
		fmt.Println("ready")
		session, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		if c.Requests > 0 {
			return answerRequests(ctx, session)
		}
		if w, err = session.OpenStream(ctx); err != nil {
			return err
		}
	}
	piece := make([]byte, 32<<10)
	for ctx.Err() == nil {
		if _, err := w.Write(piece); err != nil {
			return nil // near has what it wanted
		}
	}
	return nil
}

func quicConfig() *quic.Config {
	return &quic.Config{
		InitialStreamReceiveWindow: 6 << 20, MaxStreamReceiveWindow: 16 << 20,
		InitialConnectionReceiveWindow: 8 << 20, MaxConnectionReceiveWindow: 32 << 20,
	}
}

// nearRole downloads, and prints how many bytes a second came.
func nearRole(ctx context.Context, c cell) error {
	authority, err := ParseAuthority(c.Authority)
	if err != nil {
		return err
	}
	var r io.Reader
	switch kind, _, _ := strings.Cut(c.Peer, "-"); kind {
	case "tcp":
		if r, err = (&net.Dialer{}).DialContext(ctx, "tcp", farAddr); err != nil {
			return err
		}
	case "quic":
		conn, err := quic.DialAddr(ctx, farAddr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}}, quicConfig())
		if err != nil {
			return err
		}
		if r, err = conn.AcceptStream(ctx); err != nil {
			return err
		}
	default:
		session, err := Dial(ctx, DialConfig{Relay: farAddr, Fingerprint: authority.Fingerprint(), Transport: Transport(c.Peer)})
		if err != nil {
			return err
		}
		if c.Requests > 0 {
			return makeRequests(ctx, session, c)
		}
		if r, err = session.AcceptStream(ctx); err != nil {
			return err
		}
	}
	began := time.Now()
	var got int64
	buf := make([]byte, 256<<10)
	for counting := false; ; {
		n, err := r.Read(buf)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		got += int64(n)
		switch passed := time.Since(began); {
		case !counting && passed >= c.Warm:
			began, counting, got = time.Now(), true, 0
		case counting && passed >= c.Length:
			fmt.Printf("%.0f\n", float64(got)/passed.Seconds())
			return nil
		}
	}
}

// measure returns the share of the link that a peer had.
func (c cell) measure(t *testing.T) float64 {
	t.Helper()
	out := c.run(t)
	var rate float64
	if _, err := fmt.Sscan(out, &rate); err != nil {
		t.Fatalf("%s: got %q, want a rate: %v", c.Peer, out, err)
	}
	return rate / linkRate
}

// run makes the measurement and returns what near printed.
func (c cell) run(t *testing.T) string {
	t.Helper()
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	if c.Authority, err = authority.MarshalPEM(); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	network, err := netlab.New(c.path())
	if err != nil {
		missingSpace(t, err)
	}
	defer network.Close()
	ctx, cancel := context.WithTimeout(t.Context(), c.Warm+c.Length+time.Minute)
	defer cancel()
	env := cellEnv + "=" + string(raw)
	far, near := asRole(ctx, "far", env), asRole(ctx, "near", env)
	ready, err := far.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	near.Stdout = &out
	start := func(space *netlab.Space, cmd *exec.Cmd) error {
		return space.Do(func() error {
			netlab.Urgent()
			return cmd.Start()
		})
	}
	if err := start(network.Far, far); err != nil {
		t.Fatalf("%s: start the far end: %v", c.Peer, err)
	}
	defer far.Wait()
	defer cancel()
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		t.Fatalf("%s: the far end: %v", c.Peer, err)
	}
	if err := start(network.Near, near); err != nil {
		t.Fatalf("%s: start the near end: %v", c.Peer, err)
	}
	if err := near.Wait(); err != nil {
		t.Fatalf("%s: the near end: %v: %s", c.Peer, err, &out)
	}
	return out.String()
}

// needImpairer skips a test where there can be none.
func needImpairer(t *testing.T) {
	t.Helper()
	if slowed {
		t.Skip("the race detector is too slow for a network in real time")
	}
	require.Root(t)
	require.Tool(t, "ip")
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		require.Missing(t, "no TUN devices: %v", err)
	}
}

// TestGoodputThroughABadNetwork downloads one stream through 100 Mbit/s of
// 50 ms between network namespaces, which loses or reorders packets, and beside
// it what others make of the same: TCP with CUBIC and with BBR, and quic-go.
// ADIT_SOAK makes all of the table, and each cell 20 s long. ADIT_CALM says that
// nothing else runs, so that the figures themselves can be asserted; without it
// two paths show whether anything collapses.
func TestGoodputThroughABadNetwork(t *testing.T) {
	needImpairer(t)
	long, calm := os.Getenv("ADIT_SOAK") != "", os.Getenv("ADIT_CALM") != ""
	peers := []string{"dtls"}
	length := 5 * time.Second
	if long {
		peers, length = []string{"dtls", "tls", "quic", "tcp-bbr", "tcp-cubic"}, 20*time.Second
	}
	available, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	var table strings.Builder
	fmt.Fprintf(&table, "| | %s |\n|---|%s\n", strings.Join(peers, " | "), strings.Repeat("---|", len(peers)))
	for _, c := range []struct {
		name          string
		loss, reorder float64
		want          float64
	}{
		{"no loss", 0, 0, 0.95},
		{"0.1 % lost", 0.001, 0, 0.92},
		{"1 % lost", 0.01, 0, 0.90},
		{"3 % lost", 0.03, 0, 0.80},
		{"10 % reordered by 10 ms", 0, 0.1, 0.80},
	} {
		if !long && !calm && c.loss != 0.01 && c.reorder == 0 {
			continue
		}
		fmt.Fprintf(&table, "| %s |", c.name)
		for _, peer := range peers {
			if _, control, ok := strings.Cut(peer, "-"); ok && !strings.Contains(string(available), control) {
				table.WriteString(" not here |")
				continue
			}
			one := cell{Peer: peer, Loss: c.loss, Reorder: c.reorder, Warm: 3 * time.Second, Length: length}
			got := one.measure(t)
			fmt.Fprintf(&table, " %.1f %% |", 100*got)
			// A machine that does other work has no figures: there it is
			// asserted that nothing collapses, as CUBIC does to a thirtieth of
			// the link at 1 %.
			least, tries := 0.35*c.want, 2
			if calm {
				least, tries = 0.9*c.want, 4
			}
			for try := 0; peer == "dtls" && got < least; try++ {
				if try == tries {
					t.Errorf("%s over %s: got %.2f of the link, want %.2f", c.name, peer, got, least)
					break
				}
				got = one.measure(t)
				t.Logf("%s over %s, again: %.1f %%", c.name, peer, 100*got)
			}
		}
		table.WriteString("\n")
	}
	t.Logf("share of 100 Mbit/s at 50 ms:\n%s", table.String())
}
