package e2e

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/internal/buildtest"
)

// How docs/operations.md and docs/install.md say that containers are run.
var (
	locked    = []string{"--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges"}
	relayArgs = []string{
		"--sysctl", "net.ipv4.ip_unprivileged_port_start=0", "--stop-timeout", "60", "--volume", "adit-relay:/data",
		"-p", "80:80", "-p", "443:443", "-p", "443:443/udp", "-p", "4433:4433", "-p", "4433:4433/udp",
	}
)

const relayHost = "--add-host=tunnel.example.com:198.51.100.1"

// TestContainersOfARelayAndOfAgents has a relay in a container of one host, and
// agents in containers of another behind NAT: one beside the service that it
// publishes, by the name of that container, and one that shares its network.
func TestContainersOfARelayAndOfAgents(t *testing.T) {
	e := newEngine(t)
	e.image("adit")
	hello := t.TempDir()
	if err := buildtest.Program(filepath.Join(hello, "hello"), "adit/internal/e2e/hello"); err != nil {
		t.Fatal(err)
	}
	e.write(filepath.Join(hello, "Containerfile"), "FROM scratch\nCOPY hello /hello\nENTRYPOINT [\"/hello\"]\n")
	e.build("hello", hello)

	start := func(name string) {
		e.run("relay", name, append(append(append([]string{}, relayArgs...), locked...), "adit", "relay", "start", "--domain", "tunnel.example.com")...)
		await(t, "the relay answers its commands", func() error {
			if text, err := e.try("relay", "exec", name, "adit", "relay", "status"); err != nil {
				return errorf("%s", text)
			}
			return nil
		})
	}
	start("relay-1")
	token := strings.TrimSpace(e.podman("relay", "exec", "relay-1", "adit", "relay", "client", "add", "laptop"))

	e.podman("agent", "network", "create", "site")
	e.run("agent", "hello", "--network", "site", "hello", ":3000")
	config, secret := filepath.Join(t.TempDir(), "adit.toml"), filepath.Join(t.TempDir(), "auth_token")
	e.write(config, "[[tunnel]]\nname = \"beside\"\ntype = \"http\"\nlocal_ip = \"hello\"\nlocal_port = 3000\ndomain = \"beside\"\n")
	e.write(secret, token+"\n")
	for _, file := range []string{config, secret} {
		if err := os.Chmod(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	e.run("agent", "beside", append(append([]string{}, locked...), "--network", "site", relayHost,
		"--volume", config+":/etc/adit/adit.toml:ro", "--volume", secret+":/run/secrets/auth_token:ro",
		"--env", "ADIT_AUTH_TOKEN_FILE=/run/secrets/auth_token", "--volume", "adit-agent:/data", "adit")...)

	e.run("agent", "alone", relayHost, "hello", "127.0.0.1:3000")
	e.run("agent", "within", append(append([]string{}, locked...), "--network", "container:alone",
		"--env", "ADIT_AUTH_TOKEN="+token, "--volume", "adit-within:/data", "adit", "start")...)
	await(t, "the second agent takes a tunnel", func() error {
		if text, err := e.try("agent", "exec", "within", "adit", "tunnel", "create", "--type", "http", "--local_port", "3000", "--domain", "within"); err != nil {
			return errorf("%s", text)
		}
		return nil
	})

	visitor := e.client("visitor", "198.51.100.1:80")
	visit := func(name string) {
		t.Helper()
		await(t, "a visit of "+name, func() error {
			res, err := visitor.Get("http://" + name + ".tunnel.example.com/")
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK || string(body) != "hello 198.51.100.3" {
				return errorf("got %s %q, want hello and the visitor's own address", res.Status, body)
			}
			return nil
		})
	}
	visit("beside")
	visit("within")
	if text := e.podman("agent", "exec", "beside", "adit", "status"); !strings.Contains(text, "connected over DTLS") {
		t.Errorf("through the published port: got %s, want DTLS", text)
	}

	for _, box := range []struct{ host, name string }{{"relay", "relay-1"}, {"agent", "beside"}} {
		e.podman(box.host, "stop", "--time", "60", box.name)
		if code := strings.TrimSpace(e.podman(box.host, "inspect", "--format", "{{.State.ExitCode}}", box.name)); code != "0" {
			t.Errorf("%s stopped: got exit code %s, want 0", box.name, code)
		}
	}
	start("relay-2") // as after an upgrade, with what the volume has
	e.podman("agent", "start", "beside")
	visit("beside")
	visit("within")

	// What a container lacks is said with what to do.
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"low ports": {nil, "ip_unprivileged_port_start=0"},
		"volume":    {[]string{"--user", "1234:1234"}, "cannot be made (permission denied); make it and give it to the user that the relay runs as (number 1234)"},
	} {
		args := append([]string{"run", "--rm", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=2048:2048"}, test.args...)
		text, err := e.try("relay", append(args, "adit", "relay", "start", "--domain", "tunnel.example.com")...)
		if err == nil || !strings.Contains(text, test.want) {
			t.Errorf("%s: got %v, %s, want %q", name, err, text, test.want)
		}
	}
}
