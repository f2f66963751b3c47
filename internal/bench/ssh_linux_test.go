package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
)

func TestSSHIsMeasured(t *testing.T) {
	require.Root(t)
	for _, name := range []string{"/usr/sbin/sshd", "ssh", "ssh-keygen"} {
		require.Tool(t, name)
	}
	ctx, origin := withOrigin(t)
	table := newTable()
	o := options{plan: loopbackPlan, each: 500 * time.Millisecond, only: regexp.MustCompile("^(tcp (down|up) x1|(tcp|http) requests x1|udp)$")}
	if err := measureOther(ctx, table, "ssh", filepath.Join(t.TempDir(), "ssh"), origin, o); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range table.figures {
		if got[f.Name] = f.Values["ssh"]; strings.HasPrefix(f.Name, "http") || strings.HasPrefix(f.Name, "udp") {
			t.Errorf("%s was measured, and ssh -R has none", f.Name)
		}
	}
	// The work of the bytes is done by the processes that are looked at.
	for _, name := range []string{"tcp down x1", "tcp down x1, CPU of relay", "tcp down x1, CPU of agent", "tcp up x1", "tcp requests x1"} {
		if got[name] <= 0 {
			t.Errorf("%s: got %v", name, got[name])
		}
	}
}
