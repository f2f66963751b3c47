package record

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
)

// opensslNames are OpenSSL's own names of the suites.
var opensslNames = map[Suite]string{
	AES128GCM:        "ECDHE-ECDSA-AES128-GCM-SHA256",
	AES256GCM:        "ECDHE-ECDSA-AES256-GCM-SHA384",
	ChaCha20Poly1305: "ECDHE-ECDSA-CHACHA20-POLY1305",
}

// writeTestCert writes the certificate and its key where OpenSSL can read them.
func writeTestCert(t *testing.T) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	der, err := x509.MarshalPKCS8PrivateKey(testCert().PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: testCert().Certificate[0]},
		key:  {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// program runs OpenSSL until the test ends.
type program struct {
	in    io.WriteCloser
	lines chan string
}

func runOpenSSL(t *testing.T, args ...string) *program {
	t.Helper()
	cmd := exec.Command(require.Tool(t, "openssl"), args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	p := &program{in: in, lines: make(chan string, 1000)}
	go func() {
		defer close(p.lines)
		defer r.Close()
		for s := bufio.NewScanner(r); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return p
}

// want reads lines until one contains text.
func (p *program) want(t *testing.T, text string) {
	t.Helper()
	var seen []string
	for timeout := time.After(patience); ; {
		select {
		case line, ok := <-p.lines:
			if strings.Contains(line, text) {
				return
			}
			seen = append(seen, line)
			if !ok {
				t.Fatalf("openssl ended without %q:\n%s", text, strings.Join(seen, "\n"))
			}
		case <-timeout:
			t.Fatalf("openssl did not say %q:\n%s", text, strings.Join(seen, "\n"))
		}
	}
}

func TestOpenSSLClient(t *testing.T) {
	require.Tool(t, "openssl")
	for suite, name := range opensslNames {
		t.Run(name, func(t *testing.T) {
			leakCheck(t)
			l := startListener(t, udpSocket(t), serverConfig())
			p := runOpenSSL(t, "s_client", "-dtls1_2", "-connect", l.Addr().String(), "-cipher", name, "-alpn", "adit/1", "-quiet", "-no_ign_eof")
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			s, err := l.Accept(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if st := s.ConnectionState(); st.Suite != suite || st.Protocol != "adit/1" {
				t.Errorf("state: got %+v", st)
			}
			box := receiveAll(s)
			for i := range 3 {
				line := fmt.Sprintf("line %d from openssl\n", i)
				if _, err := io.WriteString(p.in, line); err != nil {
					t.Fatal(err)
				}
				if got := box.wait(t, i+1); got[i] != line {
					t.Errorf("got %q, want %q", got[i], line)
				}
				send(t, s, fmt.Sprintf("\xf0answer %d\n", i)) // no byte is reserved without Connection IDs
				p.want(t, fmt.Sprintf("answer %d", i))
			}
			p.in.Close() // it ends with close_notify
			if err := box.end(t); !errors.Is(err, ErrPeerClosed) {
				t.Errorf("end: got %v, want ErrPeerClosed", err)
			}
		})
	}
}

func TestOpenSSLServer(t *testing.T) {
	require.Tool(t, "openssl")
	cert, key := writeTestCert(t)
	for suite, name := range opensslNames {
		t.Run(name, func(t *testing.T) {
			leakCheck(t)
			free := udpSocket(t)
			port := free.LocalAddr().(*net.UDPAddr).Port
			free.Close()
			p := runOpenSSL(t, "s_server", "-dtls1_2", "-accept", fmt.Sprintf("127.0.0.1:%d", port),
				"-cert", cert, "-key", key, "-cipher", name, "-alpn", "adit/1")
			p.want(t, "ACCEPT")
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			c, err := Client(ctx, udpSocket(t), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}, clientConfig())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if st := c.ConnectionState(); st.Suite != suite || st.ConnectionIDs {
				t.Errorf("state: got %+v", st)
			}
			box := receiveAll(c)
			for i := range 3 {
				send(t, c, fmt.Sprintf("question %d\n", i))
				p.want(t, fmt.Sprintf("question %d", i))
				line := fmt.Sprintf("line %d\n", i)
				if _, err := io.WriteString(p.in, line); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(box.wait(t, i+1), ""); !strings.HasSuffix(got, line) {
					t.Errorf("got %q, want %q at its end", got, line)
				}
			}
			c.Close()
			p.want(t, "DONE") // our close_notify was understood
		})
	}
}
