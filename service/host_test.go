package service

import (
	"context"
	"net"
	"os"
	"path/filepath"
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
