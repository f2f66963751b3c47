package service

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/internal/discovery"
)

func TestHostTellsEverybodyWhereTheDaemonIs(t *testing.T) {
	run := t.TempDir()
	t.Setenv(EnvRun, run)
	ctx, cancel := context.WithCancel(t.Context())
	var told discovery.Info
	var err error
	hostErr := Host(ctx, Daemon{
		HTTPListen: "127.0.0.1:0", ConfigDir: t.TempDir(), StateDir: t.TempDir(),
		Ready: func(addr net.Addr) {
			if told, err = discovery.Read(run); err == nil && told.ListenAddr != addr.String() {
				t.Errorf("got address %s, want %s", told.ListenAddr, addr)
			}
			cancel()
		},
	})
	if hostErr != nil || err != nil {
		t.Fatalf("got errors %v and %v", hostErr, err)
	}
	if _, err := os.Stat(filepath.Join(run, discovery.Name)); !os.IsNotExist(err) {
		t.Errorf("runtime.json is left behind: %v", err)
	}
}

func TestHostKeepsItsLogInTheFileThatItIsTold(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "log", "adit.log")
	t.Setenv(EnvLogFile, file)
	t.Setenv(EnvRun, "")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	errorsFile := filepath.Join(dir, "log", errorsName)
	if err := os.WriteFile(errorsFile, make([]byte, errorsSize+1), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := Host(ctx, Daemon{HTTPListen: "127.0.0.1:0", ConfigDir: t.TempDir(), StateDir: t.TempDir(), Ready: func(net.Addr) { cancel() }})
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := Host(t.Context(), Daemon{HTTPListen: taken.Addr().String(), ConfigDir: t.TempDir(), StateDir: t.TempDir()}); err == nil {
		t.Error("a second daemon at the same address: got no error")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"daemon started", "daemon ended", "daemon failed", "the port is in use"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the log has no %q:\n%s", want, text)
		}
	}
	if info, err := os.Stat(errorsFile); err != nil || info.Size() != 0 {
		t.Errorf("what the service manager wrote was not bounded: %v, error %v", info, err)
	}
}

func TestHostServesWithoutItsLogFile(t *testing.T) {
	inTheWay := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(inTheWay, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvLogFile, filepath.Join(inTheWay, "adit.log"))
	t.Setenv(EnvRun, "")
	ctx, cancel := context.WithCancel(t.Context())
	served := false
	err := Host(ctx, Daemon{HTTPListen: "127.0.0.1:0", ConfigDir: t.TempDir(), StateDir: t.TempDir(), Ready: func(net.Addr) { served = true; cancel() }})
	if err != nil || !served {
		t.Errorf("got error %v, served %v", err, served)
	}
}
