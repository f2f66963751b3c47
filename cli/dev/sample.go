package dev

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"adit/cli/stdio"
)

//go:embed sample.html
var sampleHTML []byte

// samplePage is the local service that adit dev publishes if it is not given one.
type samplePage struct{ listener net.Listener }

func newSamplePage() (*samplePage, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the sample page: %w", err)
	}
	return &samplePage{l}, nil
}

func (p *samplePage) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *samplePage) serve(ctx context.Context) error {
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			w.Write(sampleHTML)
		}),
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the sample page: %w", err)
	}
	return nil
}

// loopbackVisitor returns an HTTP client that resolves every name to loopback.
func loopbackVisitor(roots *x509.CertPool) *http.Client {
	return &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				_, port, err := net.SplitHostPort(addr)
				if err != nil {
					return nil, err
				}
				return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
			},
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2: true,
		},
	}
}

// printLine writes v as one line of JSON.
func printLine(std *stdio.Streams, v any) error {
	out := json.NewEncoder(std.Out)
	out.SetEscapeHTML(false)
	return out.Encode(v)
}

// listens reports whether something answers on a port of loopback.
func listens(ctx context.Context, port int) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// print tells the user where everything is; what is what the tunnels publish.
func (r addresses) print(w io.Writer, what string) {
	fmt.Fprintf(w, `adit is running on this machine. Ctrl-C stops it and leaves nothing behind.

  Public URLs of %s:
    %s
    %s
  Web UI of the daemon:
    %s
  Console of the relay, with its admin token:
    %s
    %s

Try:
  curl %s
  curl --cacert %s %s
`, what, r.PublicURLs.HTTP, r.PublicURLs.HTTPS, r.WebUI, r.Console, r.AdminToken, r.PublicURLs.HTTP, oneWord(r.CAFile), r.PublicURLs.HTTPS)
}

// oneWord returns a path as one word of a command line in any system's shell: on Windows, the
// folder for temporary files contains the user's name.
func oneWord(path string) string {
	if strings.ContainsAny(path, " '&();") {
		return `"` + path + `"`
	}
	return path
}
