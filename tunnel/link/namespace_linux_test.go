package link

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adit/internal/netlab"
	"adit/internal/require"
)

// The roaming test runs this test binary twice again, each time in a network
// namespace of its own: as a relay, and as an agent, which downloads and changes
// the one of two links to the relay that it uses.
const (
	roleEnv     = "ADIT_TEST_LINK_ROLE"
	caEnv       = "ADIT_TEST_LINK_AUTHORITY"
	relayAddr   = "10.99.0.1:4433"
	roamChanges = 5
)

func TestMain(m *testing.M) {
	netlab.Main()
	var err error
	switch os.Getenv(roleEnv) {
	case "relay":
		err = relayRole()
	case "agent":
		err = agentRole()
	case "far":
		err = endRole(farRole)
	case "near":
		err = endRole(nearRole)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// asRole is this program again, in a role.
func asRole(ctx context.Context, role string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(append(os.Environ(), roleEnv+"="+role), env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// missingSpace ends a test that could not have a network namespace.
func missingSpace(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, unix.EPERM) {
		require.Missing(t, "%v", err)
	}
	t.Fatal(err)
}

func roamSize() int64 {
	size, err := strconv.ParseInt(os.Getenv("ADIT_TEST_LINK_SIZE"), 10, 64)
	if err != nil {
		return 64 << 20
	}
	return size
}

func roamAuthority() (*Authority, error) { return ParseAuthority([]byte(os.Getenv(caEnv))) }

// relayRole sends to the first agent that comes.
func relayRole() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	authority, err := roamAuthority()
	if err != nil {
		return err
	}
	cert, err := authority.Issue("relay")
	if err != nil {
		return err
	}
	l, err := Listen(ListenConfig{Addr: relayAddr, Certificate: cert})
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println("ready")
	session, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	stream, err := session.OpenStream(ctx)
	if err != nil {
		return err
	}
	sum := sha256.New()
	source := io.LimitReader(rand.NewChaCha8([32]byte{3}), roamSize())
	if _, err := io.CopyBuffer(io.MultiWriter(onlyWriter{stream}, sum), source, make([]byte, 256<<10)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	stream.CloseWrite()
	fmt.Printf("relay sent %x\n", sum.Sum(nil))
	select { // the agent ends the session when it has all of it
	case <-session.Done():
	case <-ctx.Done():
	}
	return nil
}

// useUplink moves the agent's traffic to one of its links, and takes the other away.
func useUplink(i int) error {
	return netlab.IP(
		fmt.Sprintf("addr replace 10.99.%d.2/24 dev agent%d", i, i),
		fmt.Sprintf("route replace default via 10.99.%d.1", i),
		fmt.Sprintf("addr flush dev agent%d", 3-i),
	)
}

func agentRole() error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	if err := useUplink(1); err != nil {
		return err
	}
	authority, err := roamAuthority()
	if err != nil {
		return err
	}
	session, err := Dial(ctx, DialConfig{Relay: relayAddr, Fingerprint: authority.Fingerprint(), Transport: DTLS})
	if err != nil {
		return err
	}
	defer session.Close("over")
	stream, err := session.AcceptStream(ctx)
	if err != nil {
		return err
	}
	size, sum, buf := roamSize(), sha256.New(), make([]byte, 256<<10)
	var got int64
	var pause time.Duration
	last, changes := time.Now(), 0
	for {
		n, err := stream.Read(buf)
		pause, last = max(pause, time.Since(last)), time.Now()
		sum.Write(buf[:n])
		got += int64(n)
		if changes < roamChanges && got > size*int64(changes+1)/(roamChanges+1) {
			changes++
			if err := useUplink(1 + changes%2); err != nil {
				return err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("after %d bytes and %d changes: %w", got, changes, err)
		}
	}
	fmt.Printf("agent got %x\n", sum.Sum(nil))
	fmt.Printf("%d bytes, %d changes of address, longest pause %v\n", got, changes, pause.Round(time.Millisecond))
	return nil
}

// roam has an agent download from a relay through changing links, and returns
// what both printed.
func roam(ctx context.Context, t *testing.T, size int64) string {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var spaces [2]*netlab.Space
	for i := range spaces {
		var err error
		if spaces[i], err = netlab.NewSpace(); err != nil {
			missingSpace(t, err)
		}
		defer spaces[i].Close()
	}
	relay, agent := spaces[0], spaces[1]
	steps := []string{"addr add 10.99.0.1/32 dev lo"}
	for i := 1; i <= 2; i++ {
		steps = append(steps,
			fmt.Sprintf("link add relay%d type veth peer name agent%d netns %s", i, i, agent.Path()),
			fmt.Sprintf("addr add 10.99.%d.1/24 dev relay%d", i, i),
			fmt.Sprintf("link set relay%d up", i))
	}
	if err := relay.IP(steps...); err != nil {
		t.Fatal(err)
	}
	// Both links stay up: a kernel takes up to a second to tell of a carrier.
	if err := agent.IP("link set agent1 up", "link set agent2 up"); err != nil {
		t.Fatal(err)
	}
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	pem, err := authority.MarshalPEM()
	if err != nil {
		t.Fatal(err)
	}
	role := func(name string) *exec.Cmd {
		return asRole(ctx, name, caEnv+"="+string(pem), fmt.Sprintf("ADIT_TEST_LINK_SIZE=%d", size))
	}
	sender, receiver := role("relay"), role("agent")
	sent, err := sender.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	receiver.Stdout = &got
	if err := relay.Do(sender.Start); err != nil {
		t.Fatalf("start the relay: %v", err)
	}
	defer sender.Wait()
	defer cancel()
	said := bufio.NewReader(sent)
	if _, err := said.ReadString('\n'); err != nil {
		t.Fatalf("wait for the relay: %v", err)
	}
	if err := agent.Do(receiver.Start); err != nil {
		t.Fatalf("start the agent: %v", err)
	}
	if err := receiver.Wait(); err != nil {
		t.Fatalf("the agent: %v: %s", err, &got)
	}
	rest, err := io.ReadAll(said)
	if err != nil {
		t.Fatalf("the relay: %v", err)
	}
	return string(rest) + got.String()
}

// TestDownloadSurvivesChangesOfUplink changes the agent's link to the network
// five times while it downloads; the system tells of each, and no pause is long.
func TestDownloadSurvivesChangesOfUplink(t *testing.T) {
	require.Root(t)
	require.Tool(t, "ip")
	size := int64(128 << 20)
	if require.Strict() && !slowed {
		size = 1 << 30
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out := roam(ctx, t, size)
	t.Logf("%s", out)
	var sums []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) == 3 && len(fields[2]) == 64 {
			sums = append(sums, fields[2])
		}
	}
	if len(sums) != 2 || sums[0] != sums[1] {
		t.Errorf("got the sums %v, want two that are equal", sums)
	}
	// What is promised is a second; the rest is for machines that do other work.
	const promised, slack = time.Second, 2 * time.Second
	_, text, _ := strings.Cut(strings.TrimSpace(out), "longest pause ")
	pause, err := time.ParseDuration(strings.SplitN(text, "\n", 2)[0])
	if err != nil || pause > promised+slack {
		t.Errorf("the longest pause was %q, want at most %v (and %v of slack)", text, promised, slack)
	}
	if !strings.Contains(out, fmt.Sprintf("%d bytes, %d changes", size, roamChanges)) {
		t.Errorf("got %s, want %d bytes and %d changes", out, size, roamChanges)
	}
}
