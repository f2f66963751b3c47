package e2e

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestDevIsTheWholeOnLoopback(t *testing.T) {
	origin := newOrigin(t)
	for _, port := range []string{"", fmt.Sprint(origin)} {
		args := []string{"dev"}
		if port != "" {
			args = append(args, port)
		}
		args = append(args, "--json", "--http_listen", "127.0.0.1:0", "--tunnel_listen", "127.0.0.1:0", "--edge_http_listen", "127.0.0.1:0", "--edge_https_listen", "127.0.0.1:0", "--console_listen", "127.0.0.1:0")
		dev := launch(t, nil, args...)
		await(t, "adit dev prints its line", func() error {
			if dev.ended() {
				t.Fatalf("adit dev ended: %s", dev.stderr.String())
			}
			if !strings.Contains(dev.stdout.String(), "\n") {
				return errorf("stdout %q", dev.stdout.String())
			}
			return nil
		})
		var line struct {
			WebUI      string `json:"web_ui"`
			Console    string `json:"console"`
			Relay      string `json:"relay"`
			AuthToken  string `json:"auth_token"`
			AdminToken string `json:"admin_token"`
			Public     struct {
				HTTP  string `json:"http"`
				HTTPS string `json:"https"`
			} `json:"public_urls"`
			CAFile  string `json:"ca_file"`
			DataDir string `json:"data_dir"`
		}
		decode(t, dev.stdout.String(), &line)
		if line.AuthToken == "" || line.AdminToken == "" || line.Relay == "" {
			t.Errorf("adit dev printed %s", dev.stdout.String())
		}
		pem, err := os.ReadFile(line.CAFile)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		visitor := visitorWith(t, roots)
		var bodies []string
		for _, url := range []string{line.Public.HTTP, line.Public.HTTPS} {
			code, body, err := fetch(visitor, url)
			if err != nil || code != http.StatusOK || body == "" {
				t.Fatalf("%s: %d, %v", url, code, err)
			}
			if port != "" && !strings.Contains(body, "host=sample.localhost") {
				t.Errorf("%s answered %q", url, body)
			}
			bodies = append(bodies, body)
		}
		if port == "" && bodies[0] != bodies[1] {
			t.Errorf("the sample page differs: %q and %q", bodies[0], bodies[1])
		}
		for _, url := range []string{line.WebUI, line.WebUI + "/healthz", line.Console + "/healthz"} {
			if err := getOK(url); err != nil {
				t.Error(err)
			}
		}
		for _, own := range []string{line.WebUI, line.Console, line.Public.HTTP, line.Public.HTTPS, "http://" + line.Relay} {
			_, listener, _ := strings.Cut(own, "://")
			_, listener, _ = net.SplitHostPort(listener)
			resp, err := http.Post(line.WebUI+"/api/v1/tunnels", "application/json", strings.NewReader(`{"local_port":`+listener+`}`))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusBadRequest {
				t.Errorf("a tunnel to adit's own listener at port %s: %s", listener, resp.Status)
			}
		}
		if code := dev.stop(); code != 0 {
			t.Errorf("adit dev ended with exit code %d: %s", code, dev.stderr.String())
		}
		if _, err := os.Stat(line.DataDir); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", line.DataDir, err)
		}
	}
}
