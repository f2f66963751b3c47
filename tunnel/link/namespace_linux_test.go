package link

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adit/internal/require"
)

// The roaming test runs this test binary twice again, each time in a network
// namespace of its own: as a relay, which joins both by two links, and as an
// agent, which downloads and changes the link that it uses.
const (
	roleEnv     = "ADIT_TEST_LINK_ROLE"
	relayAddr   = "10.99.0.1:4433"
	roamChanges = 5
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(roleEnv) {
	case "relay":
		err = relayRole()
	case "agent":
		err = agentRole()
	case "impairer":
		err = impairerRole()
	case "far":
		err = endRole("adit0", farHost, nearHost, farRole)
	case "near":
		err = endRole("adit1", nearHost, farHost, nearRole)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// inNamespace makes this program run again, in a network namespace of its own.
func inNamespace(ctx context.Context, role string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(append(os.Environ(), roleEnv+"="+role), env...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	return cmd
}

func ip(args string) error {
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", args, err, out)
	}
	return nil
}

func roamSize() int64 {
	size, err := strconv.ParseInt(os.Getenv("ADIT_TEST_LINK_SIZE"), 10, 64)
	if err != nil {
		return 64 << 20
	}
	return size
}

func relayRole() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	authority, err := NewAuthority()
	if err != nil {
		return err
	}
	fingerprint := authority.Fingerprint()
	agent := inNamespace(ctx, "agent", "ADIT_TEST_LINK_FINGERPRINT="+hex.EncodeToString(fingerprint[:]))
	agent.Stdout = os.Stdout
	start, err := agent.StdinPipe() // its first line says that the network is there
	if err != nil {
		return err
	}
	if err := agent.Start(); err != nil {
		return err
	}
	defer agent.Wait()
	defer cancel()
	steps := []string{"link set lo up", "addr add 10.99.0.1/32 dev lo"}
	for i := 1; i <= 2; i++ {
		steps = append(steps,
			fmt.Sprintf("link add relay%d type veth peer name agent%d", i, i),
			fmt.Sprintf("link set agent%d netns %d", i, agent.Process.Pid),
			fmt.Sprintf("addr add 10.99.%d.1/24 dev relay%d", i, i),
			fmt.Sprintf("link set relay%d up", i))
	}
	for _, step := range steps {
		if err := ip(step); err != nil {
			return err
		}
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
	io.WriteString(start, "go\n")
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
	if err := agent.Wait(); err != nil {
		return fmt.Errorf("the agent: %w", err)
	}
	return nil
}

// useUplink moves the agent's traffic to one of its links, and takes the other away.
func useUplink(i int) error {
	other := 3 - i
	for _, step := range []string{
		fmt.Sprintf("addr replace 10.99.%d.2/24 dev agent%d", i, i),
		fmt.Sprintf("route replace default via 10.99.%d.1", i),
		fmt.Sprintf("addr flush dev agent%d", other),
	} {
		if err := ip(step); err != nil {
			return err
		}
	}
	return nil
}

func agentRole() error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the network: %w", err)
	}
	// Both links stay up: a kernel takes up to a second to tell of a carrier.
	for _, step := range []string{"link set agent1 up", "link set agent2 up"} {
		if err := ip(step); err != nil {
			return err
		}
	}
	if err := useUplink(1); err != nil {
		return err
	}
	raw, err := hex.DecodeString(os.Getenv("ADIT_TEST_LINK_FINGERPRINT"))
	if err != nil || len(raw) != 32 {
		return fmt.Errorf("no fingerprint: %v", err)
	}
	session, err := Dial(ctx, DialConfig{Relay: relayAddr, Fingerprint: [32]byte(raw), Transport: DTLS})
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

// TestDownloadSurvivesChangesOfUplink changes the agent's link to the network
// five times while it downloads; the system tells of each, and no pause is long.
func TestDownloadSurvivesChangesOfUplink(t *testing.T) {
	require.Root(t)
	require.Tool(t, "ip")
	size := int64(128 << 20)
	if require.Strict() {
		size = 1 << 30
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, err := func() ([]byte, error) {
		cmd := inNamespace(ctx, "relay", fmt.Sprintf("ADIT_TEST_LINK_SIZE=%d", size))
		return cmd.Output()
	}()
	if err != nil {
		if strings.Contains(err.Error(), "operation not permitted") {
			require.Missing(t, "a network namespace cannot be made: %v", err)
		}
		t.Fatalf("%v: %s", err, out)
	}
	t.Logf("%s", out)
	var sums []string
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 3 && len(fields[2]) == 64 {
			sums = append(sums, fields[2])
		}
	}
	if len(sums) != 2 || sums[0] != sums[1] {
		t.Errorf("got the sums %v, want two that are equal", sums)
	}
	// What is promised is a second; the rest is for machines that do other work.
	const promised, slack = time.Second, 2 * time.Second
	_, text, _ := strings.Cut(strings.TrimSpace(string(out)), "longest pause ")
	pause, err := time.ParseDuration(strings.SplitN(text, "\n", 2)[0])
	if err != nil || pause > promised+slack {
		t.Errorf("the longest pause was %q, want at most %v (and %v of slack)", text, promised, slack)
	}
	if !strings.Contains(string(out), fmt.Sprintf("%d bytes, %d changes", size, roamChanges)) {
		t.Errorf("got %s, want %d bytes and %d changes", out, size, roamChanges)
	}
}
