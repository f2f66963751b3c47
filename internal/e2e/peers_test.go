package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"adit/internal/freeport"
	"adit/internal/require"
)

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

// tool runs a real peer's program and returns what it printed.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// background starts a real peer's server, ended with the test.
func background(t *testing.T, name string, args ...string) *output {
	t.Helper()
	cmd := exec.Command(name, args...)
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s printed:\n%s", name, tail(out.String()))
		}
	})
	return out
}

func awaitListening(t *testing.T, port int) {
	t.Helper()
	await(t, "the peer listens", func() error {
		conn, err := net.Dial("tcp", loopback(port))
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// startSSHD runs sshd on loopback, and returns its port and how ssh is asked to log in
// there with its key.
func startSSHD(t *testing.T) (port int, options []string) {
	t.Helper()
	require.Root(t)
	sshd, keygen := require.Tool(t, "/usr/sbin/sshd", "sshd"), require.Tool(t, "ssh-keygen")
	dir := t.TempDir()
	for _, key := range []string{"host", "person"} {
		tool(t, keygen, "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key))
	}
	public, err := os.ReadFile(filepath.Join(dir, "person.pub"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "authorized"), public, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	port = freeport.Get(t)
	config := filepath.Join(dir, "sshd_config")
	text := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\nStrictModes no\nPidFile none\nUsePAM no\nPermitRootLogin yes\n", port, dir, dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	background(t, sshd, "-D", "-e", "-f", config)
	awaitListening(t, port)
	return port, []string{
		"-i", filepath.Join(dir, "person"),
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-F", "none",
	}
}

// loggedIn has ssh, with more options, log in and move some bytes.
func loggedIn(t *testing.T, options ...string) {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	out := tool(t, require.Tool(t, "ssh"), append(options, me.Username+"@127.0.0.1", "head -c 3000000 /dev/zero | wc -c; echo said")...)
	if !strings.Contains(out, "3000000\nsaid") {
		t.Errorf("ssh printed %q", out)
	}
}

func TestSSHThroughATCPTunnel(t *testing.T) {
	port, options := startSSHD(t)
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("tcp", port, nil)
	loggedIn(t, append(options, "-p", fmt.Sprint(portOf(t, strings.TrimPrefix(made.PublicURL, "tcp://"))))...)
}

// TestSSHThroughAPrivateTunnel is ssh that no port in the open leads to.
func TestSSHThroughAPrivateTunnel(t *testing.T) {
	port, options := startSSHD(t)
	relay := newRelay(t)
	nas, laptop := newAgent(t), newAgent(t)
	nas.configure(relay.client("nas"))
	laptop.configure(relay.client("laptop"))
	nas.publish("tcp", port, map[string]any{"mode": "private", "domain": "ssh", "visitors": []string{"laptop"}})
	proxy := strings.Join(append(append([]string{"env"}, laptop.env...), program, "visit", "nas/ssh", "--stdio"), " ")
	loggedIn(t, append(options, "-o", "ProxyCommand="+proxy)...)
}

func TestIperf3ThroughATCPTunnel(t *testing.T) {
	iperf := require.Tool(t, "iperf3")
	port := freeport.Get(t)
	server := background(t, iperf, "-s", "-B", "127.0.0.1", "-p", fmt.Sprint(port), "--forceflush")
	awaitListening(t, port) // which the server counts as test 1
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("tcp", port, nil)
	for i, direction := range [][]string{nil, {"-R"}} {
		await(t, "the server listens again", func() error {
			if !strings.Contains(server.String(), fmt.Sprintf("(test #%d)", i+2)) {
				return errorf("%s", server.String())
			}
			return nil
		})
		args := append([]string{"-c", "127.0.0.1", "-p", fmt.Sprint(portOf(t, strings.TrimPrefix(made.PublicURL, "tcp://"))), "-t", "2", "-J"}, direction...)
		var report struct {
			End struct {
				SumReceived struct {
					Bytes int64
					Rate  float64 `json:"bits_per_second"`
				} `json:"sum_received"`
			}
		}
		if err := json.Unmarshal([]byte(tool(t, iperf, args...)), &report); err != nil {
			t.Fatal(err)
		}
		if report.End.SumReceived.Bytes < 1<<20 {
			t.Errorf("iperf3 %v moved %d bytes", direction, report.End.SumReceived.Bytes)
		}
		t.Logf("iperf3 %v: %.0f MB/s", direction, report.End.SumReceived.Rate/8e6)
	}
}

func TestDNSQueryThroughAUDPTunnel(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 250)
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		answer := new(dns.Msg).SetReply(q)
		header := dns.RR_Header{Name: q.Question[0].Name, Rrtype: q.Question[0].Qtype, Class: dns.ClassINET, Ttl: 1}
		if q.Question[0].Qtype == dns.TypeA {
			answer.Answer = append(answer.Answer, &dns.A{Hdr: header, A: net.IPv4(192, 0, 2, 1)})
		} else {
			for range 12 { // larger than one datagram of the tunnel
				answer.Answer = append(answer.Answer, &dns.TXT{Hdr: header, Txt: []string{long}})
			}
		}
		w.WriteMsg(answer)
	})}
	go server.ActivateAndServe()
	t.Cleanup(func() { server.Shutdown() })

	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("udp", conn.LocalAddr().(*net.UDPAddr).Port, nil)
	client := &dns.Client{UDPSize: 8192, Timeout: 5 * time.Second}
	visitor, err := client.Dial(strings.TrimPrefix(made.PublicURL, "udp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer visitor.Close()
	ask := func(kind uint16) (answer *dns.Msg) {
		t.Helper()
		// Again, as resolvers do: a busy machine loses packets.
		await(t, "the server answers", func() (err error) {
			query := new(dns.Msg).SetQuestion("adit.example.", kind)
			query.SetEdns0(8192, false)
			answer, _, err = client.ExchangeWithConn(query, visitor)
			return err
		})
		return answer
	}
	if answer := ask(dns.TypeA); len(answer.Answer) != 1 {
		t.Fatalf("got %v", answer)
	}
	// The answer has come, so what the visitor sends now shows that its address
	// is no forgery, and the edge lets an answer through that is far larger.
	if answer := ask(dns.TypeTXT); len(answer.Answer) != 12 || answer.Answer[11].(*dns.TXT).Txt[0] != long {
		t.Fatalf("got %v", answer)
	}
}

func TestTLSPassesThroughUntouched(t *testing.T) {
	openssl := require.Tool(t, "openssl")
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	tool(t, openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=own.localhost", "-addext", "subjectAltName=DNS:own.localhost")
	port := freeport.Get(t)
	background(t, openssl, "s_server", "-accept", loopback(port), "-cert", cert, "-key", key, "-www", "-quiet")
	awaitListening(t, port)
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("tls", port, map[string]any{"domain": "own"})
	if !strings.Contains(made.PublicURL, "own.localhost") {
		t.Errorf("public_url is %s", made.PublicURL)
	}
	out := tool(t, require.Tool(t, "curl"), "-sS", "--cacert", cert, "--resolve", fmt.Sprintf("own.localhost:%d:127.0.0.1", portOf(t, relay.https)), fmt.Sprintf("https://own.localhost:%d/", portOf(t, relay.https)))
	if !strings.Contains(out, "s_server") {
		t.Errorf("curl printed %q", tail(out))
	}
}

func TestCurlOverBothVersionsOfHTTP(t *testing.T) {
	curl := require.Tool(t, "curl")
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("https", newOrigin(t), map[string]any{"domain": "curl"})
	port := portOf(t, relay.https)
	for flag, version := range map[string]string{"--http1.1": "1.1", "--http2": "2"} {
		out := tool(t, curl, "-sS", flag, "--cacert", filepath.Join(relay.dir, "ca.pem"), "--resolve", fmt.Sprintf("curl.localhost:%d:127.0.0.1", port),
			"-w", " version=%{http_version}", made.PublicURL)
		if !strings.Contains(out, "proto=https") || !strings.HasSuffix(out, "version="+version) {
			t.Errorf("curl %s printed %q", flag, out)
		}
	}
}

// TestRedisThroughATCPTunnel has a database's own client and server at the ends,
// with pipelined commands and a subscription that the server speaks on by itself.
func TestRedisThroughATCPTunnel(t *testing.T) {
	server, cli := require.Tool(t, "redis-server"), require.Tool(t, "redis-cli")
	port := freeport.Get(t)
	background(t, server, "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	awaitListening(t, port)
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("tcp", port, nil)
	ask := func(stdin string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, cli, append([]string{"-h", "127.0.0.1", "-p", fmt.Sprint(portOf(t, strings.TrimPrefix(made.PublicURL, "tcp://")))}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("redis-cli %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	big := strings.Repeat("adit", 1<<18)
	if out := ask(big, "-x", "SET", "big"); out != "OK\n" {
		t.Errorf("SET printed %q", tail(out))
	}
	if out := ask("", "GET", "big"); out != big+"\n" {
		t.Errorf("GET printed %d bytes, want %d", len(out), len(big)+1)
	}
	var mass strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&mass, "SET k%d v%d\r\n", i, i)
	}
	if out := ask(mass.String(), "--pipe"); !strings.Contains(out, "errors: 0, replies: 10000") {
		t.Errorf("--pipe printed %q", tail(out))
	}
	if out := ask("", "EVAL", "return redis.call('DBSIZE')", "0"); out != "10001\n" {
		t.Errorf("DBSIZE printed %q", out)
	}
}
