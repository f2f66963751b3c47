package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"adit/internal/freeport"
)

// relay is one relay process on loopback, whose addresses stay over a restart.
type relay struct {
	t                            *testing.T
	dir                          string
	tunnel, http, https, console string
	tcpPorts                     string
	extra                        []string
	program                      string // empty: the built adit
	env                          []string
	peers                        int              // the port for other nodes; 0: it is alone
	gid                          int              // it runs with; 0: this process's
	time                         func() time.Time // its visitors'; nil: this machine's
	proc                         *process
}

func newRelay(t *testing.T, extra ...string) *relay {
	t.Helper()
	r := prepareRelay(t, extra...)
	r.start()
	return r
}

// prepareRelay is a relay that is not started yet.
func prepareRelay(t *testing.T, extra ...string) *relay {
	t.Helper()
	first := freeport.Row(t, 10)
	return &relay{
		t: t, dir: t.TempDir(), extra: extra,
		tunnel: freeport.Loopback(t), http: freeport.Loopback(t), https: freeport.Loopback(t), console: freeport.Loopback(t),
		tcpPorts: fmt.Sprintf("%d-%d", first, first+9),
	}
}

// relayConfig writes a relay.toml.
func relayConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "relay.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (r *relay) start() {
	r.t.Helper()
	args := append([]string{
		"relay", "start", "--data_dir", r.dir, "--domain", "localhost", "--public_host", "127.0.0.1",
		"--tunnel_listen", r.tunnel, "--edge_http_listen", r.http, "--edge_https_listen", r.https,
		"--console_listen", r.console, "--tcp_ports", r.tcpPorts, "--udp_ports", r.tcpPorts,
	}, r.extra...)
	r.proc = launchAs(r.t, r.gid, cmp.Or(r.program, program), "", r.env, args...)
	r.awaitUp()
}

func (r *relay) awaitUp() {
	r.t.Helper()
	await(r.t, "the relay's console answers", func() error {
		if r.proc.ended() {
			r.t.Fatalf("the relay ended: %s", r.proc.stderr.String())
		}
		return getOK("http://" + r.console + "/healthz")
	})
}

func getOK(url string) error {
	return getOKBy(&http.Client{Timeout: 5 * time.Second}, url)
}

func getOKBy(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}

// client adds a client and returns its auth token.
func (r *relay) client(name string) string {
	r.t.Helper()
	var added struct {
		Name      string `json:"name"`
		ClientID  string `json:"client_id"`
		AuthToken string `json:"auth_token"`
	}
	decode(r.t, must(r.t, nil, "relay", "client", "add", name, "--json", "--data_dir", r.dir), &added)
	if added.Name != name || added.ClientID == "" || added.AuthToken == "" {
		r.t.Fatalf("client add printed %+v", added)
	}
	return added.AuthToken
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}

// visitor is an HTTP client that finds every name of the relay on loopback and
// trusts the relay's own authority for visitors.
func (r *relay) visitor() *http.Client {
	r.t.Helper()
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(filepath.Join(r.dir, "ca.pem"))
	if err != nil || !roots.AppendCertsFromPEM(pem) {
		r.t.Fatalf("read the relay's authority: %v", err)
	}
	client := visitorWith(r.t, roots)
	client.Transport.(*http.Transport).TLSClientConfig.Time = r.time
	return client
}

func visitorWith(t *testing.T, roots *x509.CertPool) *http.Client {
	dialer := &net.Dialer{Timeout: patience}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return dialer.DialContext(ctx, network, "127.0.0.1:"+port)
		},
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 600,
		DisableCompression:  true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// agent is one daemon process.
type agent struct {
	t       *testing.T
	dir     string
	listen  string
	program string // empty: the built adit
	env     []string
	space   string       // the network namespace it runs in; empty: this one
	client  *http.Client // reaches its local API
	proc    *process
}

func newAgent(t *testing.T, env ...string) *agent {
	t.Helper()
	return newAgentIn(t, "", http.DefaultClient, env...)
}

// newAgentIn starts a daemon in a network namespace, where client reaches it.
func newAgentIn(t *testing.T, space string, client *http.Client, env ...string) *agent {
	t.Helper()
	dir := t.TempDir()
	a := &agent{
		t: t, dir: dir, listen: freeport.Loopback(t), space: space, client: client,
		env: append([]string{"ADIT_CONFIG_DIR=" + filepath.Join(dir, "config"), "ADIT_STATE_DIR=" + filepath.Join(dir, "state")}, env...),
	}
	a.start()
	return a
}

func (a *agent) start() {
	a.t.Helper()
	a.proc = launchProgram(a.t, cmp.Or(a.program, program), a.space, a.env, "start", "--http_listen", a.listen)
	await(a.t, "the daemon's probe answers", func() error {
		if a.proc.ended() {
			a.t.Fatalf("the daemon ended: %s", a.proc.stderr.String())
		}
		return getOKBy(a.client, "http://"+a.listen+"/healthz")
	})
}

// declare writes the agent's adit.toml, which it reads while it runs.
func (a *agent) declare(format string, args ...any) {
	a.t.Helper()
	dir := filepath.Join(a.dir, "config")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "adit.toml"), fmt.Appendf(nil, format, args...), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// answer is one answer of the local API.
type answer struct {
	Status int
	Header http.Header
	Data   json.RawMessage `json:"data"`
	Error  struct{ Code, Message, Field string }
	Raw    string
}

// call asks the local API; body is sent as JSON unless nil.
func (a *agent) call(method, path string, body any) answer {
	a.t.Helper()
	got, err := a.tryCall(method, path, body)
	if err != nil {
		a.t.Fatal(err)
	}
	return got
}

func (a *agent) tryCall(method, path string, body any) (answer, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		reader = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+a.listen+path, reader)
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	got := answer{Status: resp.StatusCode, Header: resp.Header, Raw: string(raw)}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &got); err != nil {
			return answer{}, fmt.Errorf("%s %s: %w in %q", method, path, err, raw)
		}
	}
	return got, nil
}

// ok is call, and the test ends unless the status is want; the data goes to into unless nil.
func (a *agent) ok(want int, method, path string, body, into any) {
	a.t.Helper()
	got := a.call(method, path, body)
	if got.Status != want {
		a.t.Fatalf("%s %s: got %d, want %d: %s", method, path, got.Status, want, got.Raw)
	}
	if into != nil {
		decode(a.t, string(got.Data), into)
	}
}

type status struct {
	Configured bool   `json:"configured"`
	Connected  bool   `json:"connected"`
	State      string `json:"state"`
	Relay      string `json:"relay"`
	Transport  string `json:"transport"`
	LastError  any    `json:"last_error"`
}

type tunnel struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Domain    string `json:"domain"`
	PublicURL string `json:"public_url"`
	State     string `json:"state"`
	Error     any    `json:"error"`
}

func (a *agent) status() (s status) {
	a.t.Helper()
	a.ok(http.StatusOK, "GET", "/api/v1/status", nil, &s)
	return s
}

func (a *agent) configure(token string) {
	a.t.Helper()
	a.ok(http.StatusOK, "POST", "/api/v1/auth/configure", map[string]any{"auth_token": token}, nil)
	a.awaitConnected()
}

func (a *agent) awaitConnected() time.Duration {
	a.t.Helper()
	return await(a.t, "the daemon is connected", func() error {
		if s := a.status(); !s.Connected {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
}

// awaitDTLS waits until the session is over DTLS, as it is at once unless the
// machine stood still meanwhile: then TLS has won the race, for a few seconds.
func (a *agent) awaitDTLS() {
	a.t.Helper()
	await(a.t, "the daemon is connected over dtls", func() error {
		if s := a.status(); !s.Connected || s.Transport != "dtls" {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
}

// publish creates a tunnel to a port of loopback and returns it once it runs.
func (a *agent) publish(kind string, port int, more map[string]any) tunnel {
	a.t.Helper()
	body := map[string]any{"type": kind, "mode": "standard", "local_ip": "127.0.0.1", "local_port": port}
	maps.Copy(body, more)
	var made tunnel
	a.ok(http.StatusCreated, "POST", "/api/v1/tunnels", body, &made)
	return a.awaitTunnel(made.ID, "running")
}

func (a *agent) awaitTunnel(id, state string) (got tunnel) {
	a.t.Helper()
	await(a.t, "the tunnel is "+state, func() error {
		a.ok(http.StatusOK, "GET", "/api/v1/tunnels/"+id, nil, &got)
		if got.State != state {
			return fmt.Errorf("tunnel %+v", got)
		}
		return nil
	})
	return got
}

func portOf(t *testing.T, addr string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fetch gets a URL and returns status and body.
func fetch(client *http.Client, url string) (int, string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}
