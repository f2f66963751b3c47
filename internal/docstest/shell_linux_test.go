package docstest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/internal/require"
)

// patience is for one command, which may be a build on a slow machine.
const patience = 5 * time.Minute

// shell is bash in a machine of its own as far as a document can tell: an
// empty network with the names that the documents use, an empty home, and the
// clean copy of the project as its folder.
type shell struct {
	t     *testing.T
	in    io.WriteCloser
	out   *output
	begun string // the file of what the commands that go on print
	token string // the last one that a relay gave a client
}

// output is what the shell printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) from(at int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()[at:]
}

func (o *output) length() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Len()
}

// hosts are the names that the documents use. Those under localhost need none.
const hosts = `127.0.0.1 localhost example.com relay.example.com shop.example.com tunnel.example.com shop.tunnel.example.com
`

// sudo stands in for the real one: the tests are root already.
const sudo = "#!/bin/sh\nexec \"$@\"\n"

// newShell starts bash beside the copy. It ends with the test, and with it all
// that it has started.
func newShell(t *testing.T, copied string) *shell {
	t.Helper()
	require.Root(t)
	unshare := require.Tool(t, "unshare")
	for _, tool := range []string{"bash", "curl", "ip", "mount", "python3"} {
		require.Tool(t, tool)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"hosts": hosts, "bin/sudo": sudo} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, out: &output{}, begun: filepath.Join(dir, "begun")}
	// The process namespace takes everything with it when the shell ends.
	cmd := exec.Command(unshare, "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "--norc", "--noprofile")
	cmd.Dir = copied
	cmd.Env = append(goEnvironment(t), "HOME="+home, "LANG=C.UTF-8", "TMPDIR="+dir,
		"PATH="+copied+":"+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = s.out, s.out
	cmd.WaitDelay = 10 * time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.in = in
	if err := cmd.Start(); err != nil {
		t.Fatalf("start a shell in namespaces: %v", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			begun, err := os.ReadFile(s.begun)
			t.Logf("the shell printed:\n%s\nand what was begun in it (%v):\n%s", s.out.from(0), err, begun)
		}
	})
	s.must("set -m; ulimit -c 0; ip link set lo up; mount --bind " + dir + "/hosts /etc/hosts")
	for _, port := range []string{"3000", "8000"} {
		s.must("python3 -m http.server " + port + " --bind 127.0.0.1 --directory docs >/dev/null 2>&1 &")
		s.await("curl -fs -o /dev/null http://127.0.0.1:" + port + "/")
	}
	return s
}

// goEnvironment is what the go command needs to work without a network. What it
// builds is built as build/pack does it, and found compiled.
func goEnvironment(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Split(strings.TrimSpace(string(out)), "\n")
	return []string{"GOCACHE=" + list[0], "GOMODCACHE=" + list[1], "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false -trimpath -gcflags=github.com/nats-io/nats-server/...=-l", "CGO_ENABLED=0"}
}

var (
	authToken = regexp.MustCompile(`adit_[A-Za-z0-9_-]{20,}`)
	ended     = regexp.MustCompile(`(?m)^__ended_(\d+)\n`)
)

// run types a command and returns what it printed and its exit code.
func (s *shell) run(text string) (printed string, code string) {
	s.t.Helper()
	at := s.out.length()
	fmt.Fprintf(s.in, "%s\nprintf '\\n__ended_%%d\\n' $?\n", s.filled(text))
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		printed = s.out.from(at)
		if m := ended.FindStringSubmatchIndex(printed); m != nil {
			code, printed = printed[m[2]:m[3]], printed[:m[0]]
			if strings.Contains(text, "client add") {
				s.token = authToken.FindString(printed)
			}
			return printed, code
		}
	}
	s.t.Fatalf("%s did not end; it printed %q", text, printed)
	return "", ""
}

// filled puts the token that was printed last in the place of the documents'.
func (s *shell) filled(text string) string {
	return regexp.MustCompile(`adit_[A-Za-z]*…`).ReplaceAllLiteralString(text, s.token)
}

func (s *shell) must(text string) string {
	s.t.Helper()
	printed, code := s.run(text)
	if code != "0" {
		s.t.Fatalf("%s: exit code %s, printed %q", text, code, printed)
	}
	return printed
}

// await repeats a command until it succeeds.
func (s *shell) await(text string) string {
	s.t.Helper()
	var printed, code string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if printed, code = s.run(text); code == "0" {
			return printed
		}
	}
	s.t.Fatalf("%s: never succeeded, exit code %s, printed %q", text, code, printed)
	return ""
}

// begin starts a command that does not end by itself, as one does who opens a
// second terminal for the rest: what it prints, whenever it does, is not what
// another command printed.
func (s *shell) begin(text, ready string) {
	s.t.Helper()
	s.must(strings.TrimSuffix(strings.TrimSpace(text), "&") + " >>" + s.begun + " 2>&1 &")
	s.await(ready)
}

// interrupt presses Ctrl-C for what was begun last, which has to end with one
// of the exit codes that Ctrl-C gives.
func (s *shell) interrupt() {
	s.t.Helper()
	// With job control each job is a process group of its own.
	printed, code := s.run("kill -INT -- -$! && wait $!")
	if code != "0" && code != "130" && code != "1" {
		s.t.Errorf("Ctrl-C: exit code %s, printed %q", code, printed)
	}
}
