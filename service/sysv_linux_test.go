package service

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"adit/internal/require"
)

// hangs has this program be a daemon that does not end when it is told to.
const hangs = "ADIT_TEST_HANGS"

func TestMain(m *testing.M) {
	if ready := os.Getenv(hangs); ready != "" {
		signal.Ignore(syscall.SIGTERM)
		if os.WriteFile(ready, nil, 0o600) == nil {
			select {}
		}
	}
	os.Exit(m.Run())
}

// TestSysVStopEndsADaemonThatHangs: what is killed after a while is the loop that
// brings the daemon back, and the daemon has to go with it.
func TestSysVStopEndsADaemonThatHangs(t *testing.T) {
	require.Root(t)
	require.Tool(t, "start-stop-daemon")
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "daemon") // another file than that of this process, which is not meant
	if out, err := exec.Command("cp", self, exe).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	script := filepath.Join(dir, "script")
	text := strings.NewReplacer("adit:adit", "root:root", "-o adit -g adit", "", "--user adit", "--user root", "TERM/20", "TERM/1",
		"/etc/adit", dir+"/etc", "/var/lib/adit", dir+"/lib", "/var/log/adit", dir+"/log", "/run/adit", dir+"/run").Replace(SysVScript(exe))
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(dir, "ready")
	run := func(verb string) {
		t.Helper()
		cmd := exec.Command(script, verb)
		cmd.Env = append(os.Environ(), hangs+"="+ready)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", verb, err, out)
		}
	}
	run("start")
	for deadline := time.Now().Add(time.Minute); !exists(ready); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the daemon does not start")
		}
	}
	run("stop")
	programs, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range programs {
		if target, err := os.Readlink(link); err == nil && target == exe {
			t.Errorf("%s still runs after stop", target)
			_ = exec.Command("kill", "-9", filepath.Base(filepath.Dir(link))).Run()
		}
	}
}
