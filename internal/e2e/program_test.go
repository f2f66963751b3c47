package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"adit/internal/buildtest"
)

// patience is how long a condition may take on a loaded machine. What an issue
// promises in seconds is measured apart from it.
const patience = 60 * time.Second

var (
	programs string // the folder of what is built here
	program  string // the built adit
)

// builtEnv names the built adit to a process of these tests that another began.
const builtEnv = "ADIT_E2E_BUILT"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" { // a peer's program, which needs no adit
		os.Exit(m.Run())
	}
	os.Exit(func() int {
		var err error
		if programs, err = os.MkdirTemp("", "adit-e2e"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(programs)
		if program = os.Getenv(builtEnv); program == "" {
			program = filepath.Join(programs, "adit")
			if err := buildtest.Program(program, "adit"); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	}())
}

// watched has a test that runs adit depend on its sources: go test hears nothing of what
// is read before the first test.
var watched = sync.OnceValues(buildtest.Watch)

func dependsOnSources(t *testing.T) {
	t.Helper()
	if _, err := watched(); err != nil {
		t.Fatal(err)
	}
}

// output is what a process printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// process is one running adit.
type process struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	stdout output
	stderr output
	done   chan struct{}
}

// launchIn starts adit inside a network namespace, or in this one if namespace is empty.
func launchIn(t *testing.T, namespace string, env []string, args ...string) *process {
	t.Helper()
	return launchProgram(t, program, namespace, env, args...)
}

// launchProgram is launchIn for another build of adit.
func launchProgram(t *testing.T, program, namespace string, env []string, args ...string) *process {
	t.Helper()
	return launchAs(t, 0, program, namespace, env, args...)
}

// launchAs is launchProgram with a group, by which packet filters know it; 0 is
// this process's.
func launchAs(t *testing.T, gid int, program, namespace string, env []string, args ...string) *process {
	t.Helper()
	dependsOnSources(t)
	command := append([]string{program}, args...)
	if namespace != "" {
		command = append([]string{"ip", "netns", "exec", namespace}, command...)
	}
	p := &process{t: t, name: strings.Join(args, " "), done: make(chan struct{})}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Env = append(cleanEnv(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	runAs(p.cmd, gid)
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", p.name, err)
	}
	go func() {
		defer close(p.done)
		p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("adit %s printed:\n%s%s", p.name, tail(p.stdout.String()), tail(p.stderr.String()))
		}
	})
	return p
}

func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return launchIn(t, "", env, args...)
}

func tail(text string) string {
	const most = 6000
	if len(text) > most {
		return "…" + text[len(text)-most:]
	}
	return text
}

// cleanEnv is the environment without adit's own variables and without proxies.
func cleanEnv() []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "ADIT_") || strings.HasSuffix(strings.ToLower(name), "_proxy") {
			continue
		}
		env = append(env, entry)
	}
	return env
}

// kill ends the process as a power failure would.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s: %v", p.name, err)
	}
}

// stop asks the process to end and returns its exit code.
func (p *process) stop() int {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("adit %s did not end", p.name)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// result is a command that has ended.
type result struct {
	stdout, stderr string
	code           int
}

func run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	return runInput(t, env, "", args...)
}

func runInput(t *testing.T, env []string, stdin string, args ...string) result {
	t.Helper()
	dependsOnSources(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(cleanEnv(), env...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("adit %s: %v", strings.Join(args, " "), err)
	}
	if ctx.Err() != nil {
		t.Fatalf("adit %s did not end\n%s%s", strings.Join(args, " "), &stdout, &stderr)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must is run, and the test ends if the command fails.
func must(t *testing.T, env []string, args ...string) string {
	t.Helper()
	r := run(t, env, args...)
	if r.code != 0 {
		t.Fatalf("adit %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// longWait is after how long a wait is told of, with what it was for: it came to an
// end, but whoever reads of figures asks why they were so.
const longWait = 10 * time.Second

// await waits until the condition returns nil, and ends the test with its last
// error if it never does.
func await(t *testing.T, what string, condition func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := condition()
		if err == nil {
			took := time.Since(begin)
			if took > longWait {
				t.Logf("%s: only after %v; before that: %v", what, took.Round(time.Millisecond), last)
			}
			return took
		}
		last = err
		if time.Since(begin) > patience {
			t.Fatalf("%s: %v", what, err)
		}
		<-tick.C
	}
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
