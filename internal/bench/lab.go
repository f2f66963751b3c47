package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"adit/internal/freeport"
)

// face is where visitors go: the direct path or the tunnels' public addresses.
// What has no address is not measured.
type face struct {
	tcp, http, udp string
	host           string // the Host of http
	origin         *origin
	noBulk         bool // nothing that is lost is sent again
}

// direct is the way to the origin without a tunnel.
func (o *origin) direct() face {
	return face{tcp: o.httpAddr, http: o.httpAddr, udp: o.udpAddr, origin: o}
}

// process is one adit, whose memory and CPU time can be asked.
type process struct {
	cmd *exec.Cmd
	log bytes.Buffer
}

func (p *process) end() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// memory is the resident set in bytes.
func (p *process) memory() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// setup is how a lab differs from others.
type setup struct {
	program, dir, transport string
	settings                string // further lines of relay.toml
	firstPort               int    // of a hundred for tunnels; if 0, 20000
	host                    string // where agents and visitors find the relay; if empty, 127.0.0.1
	// elsewhere calls a function where the agent and its origin are, on another
	// host. If nil, here.
	elsewhere func(func() error) error
}

// client asks the local APIs of the agents.
func (s setup) client() *http.Client {
	if s.elsewhere == nil {
		return http.DefaultClient
	}
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		failed := s.elsewhere(func() error {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
			return err
		})
		return conn, failed
	}}}
}

// lab is a relay and an agent as processes of their own.
type lab struct {
	setup
	relay, agent         *process
	relayArgs            []string
	token                string
	console, local, http string
	startTime            time.Duration
	agents               *http.Client // of their local APIs
}

// freeAddr is an address that stays free while its server is away.
func freeAddr(host string) (string, error) {
	port, err := freeport.Find(1)
	return net.JoinHostPort(host, strconv.Itoa(port)), err
}

func startLab(ctx context.Context, s setup) (_ *lab, err error) {
	l := &lab{setup: s, agents: s.client()}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.host == "" {
		l.host = "127.0.0.1"
	}
	var addrs [5]string
	for i := range addrs {
		host := l.host
		if i < 2 {
			host = "127.0.0.1"
		}
		if addrs[i], err = freeAddr(host); err != nil {
			return nil, err
		}
	}
	l.console, l.local, l.http = addrs[0], addrs[1], addrs[2]
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, err
	}
	conf := filepath.Join(l.dir, "relay.toml")
	if err := os.WriteFile(conf, []byte(l.settings), 0o600); err != nil {
		return nil, err
	}
	if l.firstPort == 0 {
		l.firstPort = 20000
	}
	ports := fmt.Sprintf("%d-%d", l.firstPort, l.firstPort+99)
	l.relayArgs = []string{
		"relay", "start", "--config", conf, "--data_dir", l.relayData(), "--domain", "localhost", "--public_host", l.host,
		"--tunnel_listen", addrs[3], "--edge_http_listen", l.http, "--edge_https_listen", addrs[4], "--console_listen", l.console,
		"--tcp_ports", ports, "--udp_ports", ports,
	}
	if err := l.startRelay(ctx); err != nil {
		return nil, err
	}
	if l.token, err = l.addClient(ctx, "bench"); err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := l.startAgent(ctx); err != nil {
		return nil, err
	}
	l.startTime = time.Since(begin)
	return l, nil
}

// relayData is the relay's data folder.
func (l *lab) relayData() string { return filepath.Join(l.dir, "relay") }

// addClient returns the token of a new client of the relay's.
func (l *lab) addClient(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, l.program, "relay", "client", "add", name, "--json", "--data_dir", l.relayData()).Output()
	if err != nil {
		return "", fmt.Errorf("add a client: %w", err)
	}
	var added struct {
		AuthToken string `json:"auth_token"`
	}
	err = json.Unmarshal(out, &added)
	return added.AuthToken, err
}

// startAgent starts the agent, with the tunnels that it had.
func (l *lab) startAgent(ctx context.Context) (err error) {
	if l.agent, err = l.startDaemon("agent", l.local); err != nil {
		return err
	}
	if err := l.awaitConnected(ctx, l.local); err != nil {
		return fmt.Errorf("%w\n%s", err, &l.agent.log)
	}
	return nil
}

// oneMoreAgent starts a further agent of the same client, and returns where its
// local API is.
func (l *lab) oneMoreAgent(name string) (*process, string, error) {
	local, err := freeAddr("127.0.0.1")
	if err != nil {
		return nil, "", err
	}
	p, err := l.startDaemon(name, local)
	return p, local, err
}

func (l *lab) startDaemon(name, local string) (*process, error) {
	state := filepath.Join(l.dir, name)
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(state, "adit.toml"), []byte("[session]\ntransport = \""+l.transport+"\"\n"), 0o600); err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(l.program, "start", "--http_listen", local)}
	p.cmd.Env = append(os.Environ(), "ADIT_CONFIG_DIR="+state, "ADIT_STATE_DIR="+state, "ADIT_AUTH_TOKEN="+l.token)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if l.elsewhere != nil {
		return p, l.elsewhere(p.cmd.Start)
	}
	return p, p.cmd.Start()
}

// restart starts both processes anew.
func (l *lab) restart(ctx context.Context) error {
	l.agent.end()
	l.relay.end()
	if err := l.startRelay(ctx); err != nil {
		return err
	}
	return l.startAgent(ctx)
}

func (l *lab) startRelay(ctx context.Context) error {
	l.relay = &process{cmd: exec.Command(l.program, l.relayArgs...)}
	l.relay.cmd.Stdout, l.relay.cmd.Stderr = &l.relay.log, &l.relay.log
	if err := l.relay.cmd.Start(); err != nil {
		return err
	}
	err := poll(ctx, func() error {
		resp, err := http.Get("http://" + l.console + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, &l.relay.log)
	}
	return nil
}

func poll(ctx context.Context, condition func() error) error {
	return pollFor(ctx, 30*time.Second, condition)
}

// pollFor is poll with a time of its own.
func pollFor(ctx context.Context, limit time.Duration, condition func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// awaitConnected waits until the agent with that local API is connected.
func (l *lab) awaitConnected(ctx context.Context, local string) error {
	return poll(ctx, func() error {
		var status struct {
			Connected bool
			Transport string
		}
		if err := l.ask("GET", local, "/api/v1/status", nil, &status); err != nil {
			return err
		}
		if !status.Connected || status.Transport != l.transport {
			return fmt.Errorf("status %+v", status)
		}
		return nil
	})
}

// call asks the agent's local API.
func (l *lab) call(method, path string, body, into any) error {
	return l.ask(method, l.local, path, body, into)
}

func (l *lab) ask(method, addr, path string, body, into any) error {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, "http://"+addr+path, reader)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.agents.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s %s", method, path, resp.Status, raw)
	}
	return json.Unmarshal(raw, &struct {
		Data any `json:"data"`
	}{into})
}

// published is how many tunnels publish makes.
const published = 3

// publish makes a tcp, an http and a udp tunnel, without the inspector.
func (l *lab) publish(o *origin) (f face, err error) {
	if f.tcp, err = l.tunnel("tcp", o.httpAddr, false); err != nil {
		return f, err
	}
	if f.udp, err = l.tunnel("udp", o.udpAddr, false); err != nil {
		return f, err
	}
	f.http, f.origin = l.http, o
	f.host, err = l.tunnel("http", o.httpAddr, false)
	return f, err
}

// tunnel makes a tunnel and returns its public host and port.
func (l *lab) tunnel(kind, addr string, inspected bool) (string, error) {
	n, err := portOf(addr)
	if err != nil {
		return "", err
	}
	var made struct {
		PublicURL string `json:"public_url"`
	}
	if err := l.call("POST", "/api/v1/tunnels", map[string]any{"type": kind, "mode": "standard", "local_port": n, "inspect": inspected}, &made); err != nil {
		return "", err
	}
	if made.PublicURL == "" {
		return "", errors.New("the tunnel has no public_url")
	}
	_, rest, _ := strings.Cut(strings.TrimSuffix(made.PublicURL, "/"), "://")
	return rest, nil
}

func portOf(addr string) (int, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}

func (l *lab) close() {
	if l.agent != nil && l.agent.cmd.Process != nil {
		l.agent.end()
	}
	if l.relay != nil && l.relay.cmd.Process != nil {
		l.relay.end()
	}
	if l.agents != nil {
		l.agents.CloseIdleConnections()
	}
}
