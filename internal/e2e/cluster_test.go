package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"adit/internal/buildtest"
	"adit/internal/freeport"
)

// natsProcess is one server of a NATS cluster, as a process that can be killed.
type natsProcess struct {
	t    *testing.T
	args []string
	url  string
	dir  string
	gid  int // it runs with; 0: this process's
	cmd  *exec.Cmd
	done chan struct{}
	asks io.Writer     // a line here has it
	says *bufio.Reader // say what it knows
}

// natsProgram builds the NATS server, once.
var natsProgram = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(programs, "natsnode")
	return binary, buildtest.Program(binary, "adit/tunnel/relay/store/natstest/natsnode")
})

// prepareNATS is n servers that know each other and are not started yet.
func prepareNATS(t *testing.T, n int) []*natsProcess {
	t.Helper()
	binary, err := natsProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var routes []string
	var ports []int
	for range n {
		ports = append(ports, freeport.Get(t))
		routes = append(routes, loopback(ports[len(ports)-1]))
	}
	var all []*natsProcess
	for i := range n {
		port := freeport.Get(t)
		s := &natsProcess{t: t, url: "nats://" + loopback(port), dir: filepath.Join(dir, fmt.Sprint(i))}
		s.args = []string{
			binary, "-name", fmt.Sprintf("n%d", i), "-dir", s.dir, "-port", fmt.Sprint(port),
			"-route", fmt.Sprint(ports[i]), "-routes", strings.Join(routes, ","),
		}
		all = append(all, s)
	}
	return all
}

// startNATS runs n servers that know each other.
func startNATS(t *testing.T, n int) []*natsProcess {
	t.Helper()
	all := prepareNATS(t, n)
	for _, s := range all {
		s.start()
	}
	for _, s := range all {
		s.awaitUp()
	}
	return all
}

func (s *natsProcess) awaitUp() {
	s.t.Helper()
	await(s.t, "the NATS server listens", func() error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "nats://"))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (s *natsProcess) start() {
	s.t.Helper()
	s.cmd, s.done = exec.Command(s.args[0], s.args[1:]...), make(chan struct{})
	runAs(s.cmd, s.gid)
	asks, err := s.cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	says, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.asks, s.says = asks, bufio.NewReader(says)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	cmd, done := s.cmd, s.done
	go func() {
		defer close(done)
		_ = cmd.Wait()
	}()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
}

func (s *natsProcess) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("signal a NATS server: %v", err)
	}
}

func (s *natsProcess) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// explain logs what a server knows of its streams, and the end of its log.
func (s *natsProcess) explain() {
	timeout := time.AfterFunc(10*time.Second, s.kill) // it may be stopped
	defer timeout.Stop()
	fmt.Fprintln(s.asks)
	knows, err := s.says.ReadString('\n')
	s.t.Logf("%s knows %s (%v)", s.url, knows, err)
	text, err := os.ReadFile(s.dir + ".log")
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return strings.Contains(strings.ToLower(line), "route")
	})
	said := strings.Join(lines, "\n")
	s.t.Logf("%s said (%v)\n%s", s.url, err, said[max(0, len(said)-40<<10):])
}

// newNodes starts n relay processes on one NATS cluster, each on a loopback
// address of its own, so that all can have the same ports.
func newNodes(t *testing.T, n int, nats []*natsProcess) []*relay {
	t.Helper()
	all := prepareNodes(t, n, nats)
	for _, r := range all {
		r.start()
	}
	return all
}

// prepareNodes is newNodes, not started yet.
func prepareNodes(t *testing.T, n int, nats []*natsProcess) []*relay {
	t.Helper()
	first := freeport.Row(t, 10)
	tunnelPort, httpPort, httpsPort, nodePort := freeport.Get(t), freeport.Get(t), freeport.Get(t), freeport.Get(t)
	var urls []string
	for _, s := range nats {
		urls = append(urls, s.url)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret that all the nodes share"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []*relay
	for i := range n {
		host := fmt.Sprintf("127.0.0.%d", i+1)
		at := func(port int) string { return fmt.Sprintf("%s:%d", host, port) }
		r := &relay{
			t: t, dir: t.TempDir(), tunnel: at(tunnelPort), http: at(httpPort), https: at(httpsPort), console: freeport.Loopback(t),
			tcpPorts: fmt.Sprintf("%d-%d", first, first+9),
		}
		config := filepath.Join(t.TempDir(), "relay.toml")
		text := fmt.Sprintf("[nats]\nurls = [%q]\nsecret_file = %q\n[nodes]\nname = \"node%d\"\nlisten = %q\nagent_address = %q\nleave = \"500ms\"\n",
			urls[0], secret, i, at(nodePort), r.tunnel)
		text = strings.Replace(text, fmt.Sprintf("%q", urls[0]), `"`+strings.Join(urls, `", "`)+`"`, 1)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r.extra, r.peers = []string{"--config", config}, nodePort
		all = append(all, r)
	}
	return all
}

// crowd is visitors at a steady rate, each request at the next of the edges. A
// visitor whose connection is refused or cut before an answer asks the next edge
// once, as browsers do with a name of several addresses.
type crowd struct {
	nodes []*relay
	host  string
	end   chan struct{}
	wg    sync.WaitGroup

	sent, again, failed atomic.Int64
	// strict has a connection that was cut count as a failure: only one that was
	// refused asks elsewhere.
	strict atomic.Bool
	mu     sync.Mutex
	why    map[string]int
	lastOK time.Time
	gap    time.Duration // the longest time without an answer
}

const crowdRate = 200 // requests a second

func startCrowd(nodes []*relay, host string) *crowd {
	c := &crowd{nodes: nodes, host: host, end: make(chan struct{}), why: map[string]int{}, lastOK: time.Now()}
	c.wg.Go(func() {
		tick := time.NewTicker(time.Second / crowdRate)
		defer tick.Stop()
		transport := &http.Transport{MaxIdleConnsPerHost: 64}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				c.wg.Go(func() { c.visit(client, i) })
			case <-c.end:
				return
			}
		}
	})
	return c
}

func (c *crowd) visit(client *http.Client, i int) {
	c.sent.Add(1)
	err := c.ask(client, c.nodes[i%len(c.nodes)])
	if refused := errors.Is(err, syscall.ECONNREFUSED); refused || err != nil && !c.strict.Load() && isCut(err) {
		c.again.Add(1)
		err = c.ask(client, c.nodes[(i+1)%len(c.nodes)])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed.Add(1)
		c.why[err.Error()]++
		return
	}
	now := time.Now()
	c.gap = max(c.gap, now.Sub(c.lastOK))
	c.lastOK = now
}

// isCut reports whether a connection ended before an answer came.
func isCut(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE)
}

func (c *crowd) ask(client *http.Client, r *relay) error {
	req, err := http.NewRequest(http.MethodGet, "http://"+r.http+"/", nil)
	if err != nil {
		return err
	}
	req.Host = c.host
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", resp.StatusCode)
	}
	return err
}

// report tells what came of the requests since the last report.
func (c *crowd) report(t *testing.T, what string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Logf("%s: %d requests, %d asked a second edge, %d failed %v, at most %v without an answer",
		what, c.sent.Swap(0), c.again.Swap(0), c.failed.Load(), c.why, c.gap.Round(time.Millisecond))
	if n := c.failed.Swap(0); n > 0 {
		t.Errorf("%s: %d requests failed: %v", what, n, c.why)
	}
	c.why, c.gap, c.lastOK = map[string]int{}, 0, time.Now()
}

func (c *crowd) stop() {
	close(c.end)
	c.wg.Wait()
}

// nodesOf asks a relay's admin API for its nodes.
func nodesOf(t *testing.T, r *relay) (reachable, sessions int) {
	t.Helper()
	var list struct {
		Items []struct {
			Reachable bool `json:"reachable"`
			Draining  bool `json:"draining"`
			Sessions  int  `json:"session_count"`
		} `json:"items"`
	}
	out := run(t, nil, "relay", "nodes", "--json", "--data_dir", r.dir)
	if out.code != 0 {
		return 0, 0
	}
	decode(t, out.stdout, &list)
	for _, n := range list.Items {
		if n.Reachable && !n.Draining {
			reachable++
			sessions += n.Sessions
		}
	}
	return reachable, sessions
}

// awaitNodes waits until a relay reaches all nodes, and its agents have two
// sessions each.
func awaitNodes(t *testing.T, r *relay, nodes, agents int) time.Duration {
	t.Helper()
	return await(t, "all nodes are there, with two sessions of each agent", func() error {
		if n, s := nodesOf(t, r); n != nodes || s != 2*agents {
			return fmt.Errorf("%d nodes, %d sessions", n, s)
		}
		return nil
	})
}

// TestThreeNodesLoseOneAfterTheOther has three relays on three NATS servers under
// a steady load, and kills each of the six in turn; then it restarts the relays
// in good order. Visitors who ask a second edge once notice nothing of it.
func TestThreeNodesLoseOneAfterTheOther(t *testing.T) {
	needLoopback(t)
	nats := startNATS(t, 3)
	nodes := newNodes(t, 3, nats)
	token := nodes[0].client("laptop")
	port := newOrigin(t)
	agents := []*agent{newAgent(t), newAgent(t)}
	var tunnels []tunnel
	for i, a := range agents {
		a.configure(token)
		tunnels = append(tunnels, a.publish("http", port, map[string]any{"domain": fmt.Sprintf("site%d", i)}))
	}
	raw := agents[0].publish("tcp", newEcho(t), nil)
	awaitNodes(t, nodes[0], 3, len(agents))
	load := startCrowd(nodes, "site0.localhost")
	defer load.stop()
	other := startCrowd(nodes, "site1.localhost")
	defer other.stop()
	report := func(what string) {
		t.Helper()
		load.report(t, what+", first agent")
		other.report(t, what+", second agent")
	}
	pause := func() { time.Sleep(1500 * time.Millisecond) } // under load, for what is to go wrong
	everywhere := func() {
		t.Helper()
		for _, r := range nodes {
			for _, tun := range tunnels {
				host := strings.TrimSuffix(strings.TrimPrefix(tun.PublicURL, "http://"), r.http[strings.LastIndex(r.http, ":"):])
				await(t, "every edge serves every tunnel", func() error {
					c := crowd{host: host}
					return c.ask(&http.Client{Timeout: 20 * time.Second}, r)
				})
			}
		}
	}
	everywhere()
	pause()
	report("all well")

	for i, r := range nodes {
		r.proc.kill()
		pause()
		left := nodes[(i+1)%3]
		moved := awaitNodes(t, left, 2, len(agents))
		report(fmt.Sprintf("relay %d killed, second sessions again after %v more", i, moved.Round(time.Millisecond)))
		r.start()
		awaitNodes(t, left, 3, len(agents))
		everywhere()
		report(fmt.Sprintf("relay %d back", i))
	}
	for i, s := range nats {
		s.kill()
		pause()
		report(fmt.Sprintf("NATS server %d killed", i))
		changed := setPolicyEverywhere(t, nodes, "site1", fmt.Sprintf("192.0.2.%d", i+1))
		report(fmt.Sprintf("a policy reached all nodes %v after it was taken", changed.Round(time.Millisecond)))
		s.start()
		pause()
	}
	report("NATS servers back")
	for _, c := range []*crowd{load, other} {
		c.strict.Store(true)
	}
	for i, r := range nodes {
		if code := r.proc.stop(); code != 0 {
			t.Errorf("relay %d ended with code %d", i, code)
		}
		report(fmt.Sprintf("relay %d ended in good order", i))
		r.start()
		awaitNodes(t, nodes[(i+1)%3], 3, len(agents))
		everywhere()
		report(fmt.Sprintf("relay %d restarted", i))
	}
	for i, a := range agents {
		if after := a.awaitTunnel(tunnels[i].ID, "running"); after.PublicURL != tunnels[i].PublicURL {
			t.Errorf("public_url was %s and is %s", tunnels[i].PublicURL, after.PublicURL)
		}
	}
	for _, r := range nodes {
		clients := must(t, nil, "relay", "client", "list", "--data_dir", r.dir)
		policies := must(t, nil, "relay", "policy", "list", "--data_dir", r.dir)
		if !strings.Contains(clients, "laptop") || !strings.Contains(policies, "site1") {
			t.Errorf("%s lost something:\n%s\n%s", r.http, clients, policies)
		}
		addr := r.http[:strings.LastIndex(r.http, ":")] + raw.PublicURL[strings.LastIndex(raw.PublicURL, ":"):]
		echoes(t, addr)
	}
}

// needLoopback skips a test where only one address is loopback.
func needLoopback(t *testing.T) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.3:0")
	if err != nil {
		t.Skipf("this system has no further loopback addresses: %v", err)
	}
	ln.Close()
}

// echoes talks to the echo tunnel at an address.
func echoes(t *testing.T, addr string) {
	t.Helper()
	await(t, "the tcp tunnel answers at "+addr, func() error {
		conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Write([]byte("hello")); err != nil {
			return err
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
			return fmt.Errorf("got %q: %w", got, err)
		}
		return nil
	})
}

// setPolicyEverywhere sets a policy at the first node and returns how long it
// took from its being taken until all nodes had it.
func setPolicyEverywhere(t *testing.T, nodes []*relay, name, deny string) time.Duration {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"deny":[%q]}`, deny), 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "a policy is taken", func() error {
		if r := run(t, nil, "relay", "policy", "set", name, file, "--data_dir", nodes[0].dir); r.code != 0 {
			return errors.New(r.stderr)
		}
		return nil
	})
	begin := time.Now()
	for _, r := range nodes {
		await(t, "a node has the policy", func() error {
			if text := run(t, nil, "relay", "policy", "show", name, "--json", "--data_dir", r.dir).stdout; !strings.Contains(text, deny) {
				return errors.New(text)
			}
			return nil
		})
	}
	took := time.Since(begin)
	// A second is promised; reading it takes three commands, on a machine that
	// has much else to do.
	if limit := 30 * time.Second; took > limit {
		t.Errorf("a policy took %v to reach all nodes", took)
	}
	return took
}
