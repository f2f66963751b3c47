//go:build !windows

package main

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// envSelf has the test program be adit.
const envSelf = "ADIT_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envSelf) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// daemon starts adit start by a shell that runs before first, and waits until
// it answers.
func daemon(t *testing.T, before string) (cmd *exec.Cmd, answers func() bool) {
	t.Helper()
	// A test run may have been begun by nohup. What is caught here is what a
	// child finds as it is by default.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(caught) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd = exec.Command("/bin/sh", "-c", before+` exec "$0" start --http_listen 127.0.0.1:0`, self)
	cmd.Env = append(os.Environ(), envSelf+"=1", "ADIT_CONFIG_DIR="+dir, "ADIT_STATE_DIR="+dir, "RUNTIME_DIRECTORY=", "ADIT_LOG_FILE=")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = cmd.Process.Kill() // it has ended mostly
	})
	answers = func() bool {
		_, err := os.Stat(filepath.Join(dir, "runtime.json"))
		return err == nil
	}
	for limit := time.Now().Add(time.Minute); !answers(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("the daemon does not answer")
		}
	}
	return cmd, answers
}

func TestAClosedTerminalEndsWhatRunsInIt(t *testing.T) {
	cmd, answers := daemon(t, "")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, want the end that Ctrl-C makes", err)
	}
	if answers() {
		t.Error("runtime.json is left behind")
	}
}
