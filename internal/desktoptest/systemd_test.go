//go:build linux

package desktoptest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
)

// debian returns the archive of a small Debian with these packages. It is kept
// between runs, because downloading it takes longer than all the rest.
func debian(t *testing.T, packages ...string) (archive string) {
	t.Helper()
	require.Tool(t, "mmdebstrap")
	archive = filepath.Join(os.TempDir(), "adit-rootfs-bookworm-"+packages[0]+".tar")
	if _, err := os.Stat(archive); err != nil {
		begin := time.Now()
		part := fmt.Sprintf("%s.%d.part", archive, os.Getpid())
		defer os.Remove(part) // gone already, if all went well
		must(t, 10*time.Minute, nil, "mmdebstrap", "--variant=minbase", "--include="+strings.Join(packages, ","), "--format=tar", "bookworm", part)
		if err := os.Rename(part, archive); err != nil {
			t.Fatal(err)
		}
		t.Logf("made a Debian: %.1f s", time.Since(begin).Seconds())
	}
	return archive
}

// rootFS lays a Debian out in dir.
func rootFS(t *testing.T, dir, archive string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	must(t, 5*time.Minute, nil, "tar", "-C", dir, "--exclude=./dev/*", "-xf", archive)
}

// verdicts reads the lines that a script has left: "PASS name", "FAIL name: why"
// and "NOTE figure".
func verdicts(t *testing.T, log string, least int) {
	t.Helper()
	passed := 0
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "PASS "):
			passed++
			t.Log(line)
		case strings.HasPrefix(line, "FAIL "):
			t.Error(line)
		case strings.HasPrefix(line, "NOTE "):
			t.Log(line)
		}
	}
	if passed < least || !strings.Contains(log, "\nEND\n") {
		t.Errorf("%d checks passed, want %d and the script's end; it said\n%s", passed, least, log)
	}
}

func TestDebUnderSystemd(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	require.Root(t)
	nspawn := require.Tool(t, "systemd-nspawn")
	archive := debian(t, "systemd", "systemd-sysv", "dbus", "curl", "procps")
	first := deb(t, firstVersion)
	second := deb(t, secondVersion)

	root := filepath.Join(t.TempDir(), "root")
	rootFS(t, root, archive)
	for from, to := range map[string]string{first: "/first.deb", second: "/second.deb"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+to, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	key := offer(t, filepath.Join(root, "releases"), map[string][]byte{"good": read(t, released(t, secondVersion)), "dumb": []byte("#!/bin/sh\nexec sleep 1000\n")})
	script, err := os.ReadFile("testdata/systemd.sh")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"/lab.sh":                         "key=" + key + "\n" + string(script),
		"/etc/systemd/system/lab.service": "[Unit]\nAfter=basic.target dbus.service\n[Service]\nType=oneshot\nExecStart=/bin/bash /lab.sh\nStandardOutput=file:/lab.log\nStandardError=file:/lab.err\nExecStopPost=/bin/systemctl --no-block poweroff\n",
	} {
		if err := os.WriteFile(root+name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	wants := root + "/etc/systemd/system/multi-user.target.wants"
	if err := os.MkdirAll(wants, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/systemd/system/lab.service", wants+"/lab.service"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	out, err := command(t, 8*time.Minute, nil, nspawn, "-D", root, "--register=no", "--keep-unit", "--private-network",
		"--machine=aditlab"+time.Now().Format("150405"), "-b")
	t.Logf("boot, test and power-off: %.1f s", time.Since(begin).Seconds())
	log, readErr := os.ReadFile(root + "/lab.log")
	if readErr != nil {
		t.Fatalf("the machine left no log: %v; nspawn: %v\n%s", readErr, err, out)
	}
	verdicts(t, string(log), 76)
	if t.Failed() {
		text, _ := os.ReadFile(root + "/lab.err")
		t.Logf("the script's errors:\n%s", text)
	}
}
