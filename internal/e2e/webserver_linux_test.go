package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"adit/internal/require"
)

// page is what docs/operations.md shows of a relay behind another web server.
type page struct{ relay, nginx, location, ending, caddy string }

func readPage(t *testing.T) (p page) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Behind nginx or Caddy\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for what, into := range map[string]*string{
		"(?s)\n```toml\n(.*?)```":                     &p.relay,
		"(?s)\n```nginx\n(.*?)```":                    &p.nginx,
		"(?s)\n        location / {\n(.*?)\n {8}}":    &p.location,
		"(?s)`(proxy_pass https://[^`]*)`":            &p.ending,
		"(?s)Caddy ends TLS itself:\n\n```\n(.*?)```": &p.caddy,
	} {
		found := regexp.MustCompile(what).FindStringSubmatch(section)
		if found == nil {
			t.Fatalf("docs/operations.md has nothing like %s", what)
		}
		*into = found[1]
	}
	return p
}

// nginxEnding is nginx that ends TLS itself, as the page says in words.
func (p page) nginxEnding(t *testing.T) string {
	t.Helper()
	plain := "proxy_pass http://127.0.0.1:8080;"
	if strings.Count(p.location, plain) != 1 {
		t.Fatalf("the location has no %s", plain)
	}
	http := p.nginx[strings.Index(p.nginx, "http {"):]
	return strings.TrimSuffix(strings.TrimSpace(http), "}") + `
    server {
        listen 443 ssl;
        server_name *.tunnel.example.com;
        ssl_certificate wildcard.pem;
        ssl_certificate_key wildcard.key;
        location / {
` + strings.Replace(p.location, plain, p.ending, 1) + `
        }
    }
}
`
}

const (
	serverAddr  = "203.0.113.1"
	visitorAddr = "198.51.100.7"
	hostName    = "shop.tunnel.example.com"
)

// TestRelayBehindTheWebServersOfThePage has the relay behind nginx and Caddy with
// the configurations that docs/operations.md shows, at the addresses it shows.
func TestRelayBehindTheWebServersOfThePage(t *testing.T) {
	require.Opted(t)
	nginx, caddy := require.Tool(t, "nginx", "/usr/sbin/nginx"), require.Tool(t, "caddy")
	stream := "/usr/lib/nginx/modules/ngx_stream_module.so"
	if _, err := os.Stat(stream); err != nil {
		require.Missing(t, "nginx's stream module: %v", err)
	}
	if !unshared(t, "300m") {
		return
	}
	for _, addr := range []string{serverAddr, visitorAddr} {
		tool(t, "ip", "addr", "add", addr+"/32", "dev", "lo")
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tool(t, "mount", "--bind", write("hosts", "127.0.0.1 localhost\n"+serverAddr+" tunnel.example.com\n"), "/etc/hosts")
	for _, path := range []string{"/var/lib", "/var/log"} { // of nginx, and the page's data_dir
		tool(t, "mount", "-t", "tmpfs", "tmpfs", path)
		if err := os.Mkdir(path+"/nginx", 0o755); err != nil {
			t.Fatal(err)
		}
	}

	p := readPage(t)
	// There is no authority for certificates here: the relay uses its own.
	relay, _, _ := strings.Cut(p.relay, "[acme]")
	launch(t, nil, "relay", "start", "--config", write("relay.toml", relay))
	await(t, "the relay answers", func() error { return getOK("http://127.0.0.1:37280/healthz") })
	const data = "/var/lib/adit-relay"
	var added struct {
		AuthToken string `json:"auth_token"`
	}
	decode(t, must(t, nil, "relay", "client", "add", "laptop", "--json", "--data_dir", data), &added)
	agent := newAgent(t)
	agent.configure(added.AuthToken)
	port := newOrigin(t)
	for _, kind := range []string{"http", "https"} {
		if made := agent.publish(kind, port, map[string]any{"domain": "shop"}); strings.TrimSuffix(made.PublicURL, "/") != kind+"://"+hostName {
			t.Errorf("the public URL is %s", made.PublicURL)
		}
	}
	roots := x509.NewCertPool()
	if text, err := os.ReadFile(data + "/ca.pem"); err != nil || !roots.AppendCertsFromPEM(text) {
		t.Fatalf("read the relay's authority: %v", err)
	}
	wildcard := selfSigned(t, "*.tunnel.example.com").Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(wildcard.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: wildcard.Certificate[0]}))
	roots.AppendCertsFromPEM([]byte(text))
	write("wildcard.pem", text)
	write("wildcard.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))

	runNginx := func(file string) []string {
		return []string{nginx, "-p", dir, "-c", file, "-g", "daemon off; master_process off; pid pid;"}
	}
	for _, behind := range []struct {
		name, file, config string
		command, kinds     []string
	}{
		{"nginx", "nginx.conf", "load_module " + stream + ";\nevents {}\n" + p.nginx, runNginx("nginx.conf"), []string{"http", "https"}},
		{"nginx-tls", "nginx-tls.conf", "events {}\n" + p.nginxEnding(t), runNginx("nginx-tls.conf"), []string{"http", "https"}},
		{"caddy", "Caddyfile", p.caddy, []string{caddy, "run", "--config", "Caddyfile"}, []string{"https"}},
	} {
		t.Run(behind.name, func(t *testing.T) {
			write(behind.file, behind.config)
			serve(t, dir, behind.command)
			for _, kind := range behind.kinds {
				forwarded := visitorAddr + ", 127.0.0.1"
				if behind.name == "nginx" && kind == "https" {
					forwarded = visitorAddr // nginx has not seen the request
				}
				visit(t, kind+"://"+hostName, behind.name, "host="+hostName+" for="+forwarded+" proto="+kind, visitorOf(t, roots))
			}
			if behind.name == "nginx" {
				passesOwnSite(t)
			}
			await(t, "the access log has the visitor's address", func() error {
				return logged(t, data, "/"+behind.name, len(behind.kinds))
			})
		})
	}
}

// serve runs a web server in dir until the test ends.
func serve(t *testing.T, dir string, command []string) {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(cleanEnv(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	var out output
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s printed:\n%s", command[0], tail(out.String()))
		}
	})
	await(t, "the web server listens", func() error {
		for _, port := range []string{"80", "443"} {
			conn, err := net.Dial("tcp", net.JoinHostPort(serverAddr, port))
			if err != nil {
				return err
			}
			conn.Close()
		}
		return nil
	})
}

// visitorOf is a visitor from elsewhere, who finds every name at the server.
func visitorOf(t *testing.T, roots *x509.CertPool) *http.Client {
	t.Helper()
	client := visitorWith(t, roots)
	dialer := &net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(visitorAddr)}}
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		return dialer.DialContext(ctx, network, net.JoinHostPort(serverAddr, port))
	}
	return client
}

// visit has a visitor ask for a page, send much, follow events and open a
// WebSocket.
func visit(t *testing.T, base, path, want string, visitor *http.Client) {
	t.Helper()
	code, body, err := fetch(visitor, base+"/"+path)
	if err != nil || code != http.StatusOK || body != want {
		t.Errorf("%s: got %d, %q, %v, want %q", base, code, body, err, want)
	}
	const size = 3 << 20 // more than nginx takes by itself
	resp, err := visitor.Post(base+"/upload", "application/octet-stream", io.LimitReader(&pattern{}, size))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(sum) != patternSum(size) {
		t.Errorf("%s: the origin was sent %d, %q, %v", base, resp.StatusCode, sum, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/sse?n=3", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err = visitor.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := range 3 {
		for lines.Scan() && lines.Text() == "" {
		}
		if want := fmt.Sprintf("data: %d", i); lines.Text() != want {
			t.Fatalf("%s: got %q, want %q before the next was asked for (%v)", base, lines.Text(), want, lines.Err())
		}
		if _, _, err := fetch(visitor, base+"/next"); err != nil {
			t.Fatal(err)
		}
	}
	conn, _, err := websocket.Dial(ctx, base+"/echo", &websocket.DialOptions{HTTPClient: visitor})
	if err != nil {
		t.Fatalf("%s: %v", base, err)
	}
	defer conn.CloseNow()
	if err := conn.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := conn.Read(ctx); err != nil || string(got) != "hello" {
		t.Errorf("%s: the WebSocket said %q, %v", base, got, err)
	}
}

// passesOwnSite holds that nginx gives a site of its own what is not the relay's.
func passesOwnSite(t *testing.T) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:8443")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(visitorAddr)}}
	conn, err := dialer.Dial("tcp", serverAddr+":443")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	go tls.Client(conn, &tls.Config{ServerName: "www.example.com"}).Handshake() // ended by Close
	ln.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	own, err := ln.Accept()
	if err != nil {
		t.Fatalf("nginx's own site is not asked: %v", err)
	}
	defer own.Close()
	own.SetDeadline(time.Now().Add(patience))
	header, err := bufio.NewReader(own).ReadString('\n')
	if err != nil || !strings.HasPrefix(header, "PROXY TCP4 "+visitorAddr+" ") {
		t.Errorf("nginx's own site is sent %q, %v", header, err)
	}
}

// logged holds that the relay's access log has a visitor's requests of a path.
func logged(t *testing.T, data, path string, want int) error {
	t.Helper()
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	text := must(t, nil, "relay", "access", "--json", "--data_dir", data, "--host", hostName, "--address", visitorAddr, "--path", path)
	decode(t, text, &list)
	if len(list.Items) != want {
		return errorf("got %d of %s, want %d: %s", len(list.Items), path, want, text)
	}
	return nil
}
