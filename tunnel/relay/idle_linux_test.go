package relay

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// idleEnv makes a process act as idle visitors.
const idleEnv = "ADIT_TEST_IDLE_VISITORS"

// idleOrder tells such a process what to do.
type idleOrder struct {
	Kind  string
	At    Addrs
	CA    string // file
	Count int
}

// TestIdleVisitorsOfOtherProcesses holds idle connections of visitors that are separate
// processes, and reports what each costs the process with the relay, its agent and
// origin. ADIT_IDLE_VISITORS sets how many: the relay is meant to handle 10000.
func TestIdleVisitorsOfOtherProcesses(t *testing.T) {
	if order := os.Getenv(idleEnv); order != "" {
		beIdle(t, order)
		return
	}
	many, each := 1000, 2500
	if slowed {
		many = 200
	}
	if n, err := strconv.Atoi(os.Getenv("ADIT_IDLE_VISITORS")); err == nil {
		many = n
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && limit.Cur < uint64(many+500) {
		t.Skipf("a process may have %d files open here", limit.Cur)
	}
	cfg := testConfig(t.TempDir())
	cfg.Limits.ConnectionsPerAddress = many + 100
	s := startSite(t, cfg, text("hello"))
	s.unharmed(t)
	for _, kind := range []string{"HTTP/1.1", "TLS and HTTP/1.1", "TLS and HTTP/2"} {
		t.Run(kind, func(t *testing.T) {
			before := heap()
			var visitors sync.WaitGroup
			var ends []io.Closer
			defer visitors.Wait()
			defer func() {
				for _, c := range ends {
					c.Close()
				}
			}()
			for left := many; left > 0; left -= each {
				order, _ := json.Marshal(idleOrder{kind, s.Addrs(), s.CAFile(), min(left, each)})
				cmd := exec.Command(os.Args[0], "-test.run", "^"+"TestIdleVisitorsOfOtherProcesses"+"$")
				cmd.Env, cmd.Stderr = append(os.Environ(), idleEnv+"="+string(order)), os.Stderr
				in, err := cmd.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				ends = append(ends, in)
				said := bufio.NewReader(out)
				if line, err := said.ReadString('\n'); err != nil || line != "idle\n" {
					rest, _ := io.ReadAll(said)
					t.Errorf("the visitors say %q, %v\n%s", line, err, rest)
				}
				visitors.Go(func() {
					_, _ = io.Copy(io.Discard, said)
					_ = cmd.Wait()
				})
			}
			if n := s.edge.Figures().Connections; n < many {
				t.Errorf("%d connections are counted, want %d", n, many)
			}
			t.Logf("%d visitors: %d bytes each in the process of the relay", many, (heap()-before)/int64(many))
			s.unharmed(t)
		})
	}
	eventually(t, "they are counted out", func() bool { return s.edge.Figures().Connections < 10 })
}

// beIdle opens the connections and holds them until its input ends.
func beIdle(t *testing.T, text string) {
	var order idleOrder
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(order.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	held := make([]net.Conn, order.Count)
	turns := make(chan int)
	var work sync.WaitGroup
	for range 16 {
		work.Go(func() {
			for i := range turns {
				held[i] = idleVisitor(t, order.At, roots, order.Kind)
			}
		})
	}
	for i := range held {
		turns <- i
	}
	close(turns)
	work.Wait()
	if t.Failed() {
		return
	}
	fmt.Println("idle")
	_, _ = io.Copy(io.Discard, os.Stdin)
	for _, c := range held {
		c.Close()
	}
}
