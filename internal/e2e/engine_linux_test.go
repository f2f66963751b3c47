package e2e

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"adit/internal/require"
)

// engine is podman with a storage of its own, which the hosts of a laboratory
// share. The system's podman and network know nothing of it.
type engine struct {
	*hosts
	dir    string
	holder int // a process in the engine's mount namespace
}

// holding gives podman a place of its own for storage, locks and caches, and unmounts what
// crun refuses to work beside: a version 2 of the control groups that has some of
// the controllers, and not all. Then it waits.
const holding = `set -e
mkdir -p /run/containers /var/lib/containers
for place in "$1" /dev/shm /run/containers /var/lib/containers; do mount -t tmpfs tmpfs "$place"; done
if [ -d /sys/fs/cgroup/unified ]; then umount /sys/fs/cgroup/unified; fi
echo held
exec cat`

func newEngine(t *testing.T) *engine {
	t.Helper()
	h := newHosts(t)
	for _, name := range []string{"podman", "crun", "conmon", "nsenter", "unshare"} {
		require.Tool(t, name)
	}
	if _, err := os.Stat("/usr/lib/podman/netavark"); err != nil {
		require.Missing(t, "the network of containers: %v", err)
	}
	dir, err := os.MkdirTemp("", "pod") // podman takes short names only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	e := &engine{hosts: h, dir: dir}
	hold := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", holding, "sh", dir)
	in, err := hold.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := hold.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); hold.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("hold a mount namespace: got %q, %v", line, err)
	}
	e.holder = hold.Process.Pid
	return e
}

// command is podman with args on a host.
func (e *engine) command(host string, args ...string) *exec.Cmd {
	at := func(name string) string { return filepath.Join(e.dir, name) }
	all := []string{
		"-t", strconv.Itoa(e.holder), "--mount", "--net=/run/netns/" + e.spaces[host], "--", "podman",
		"--root", at("storage"), "--runroot", at("run"), "--tmpdir", at("tmp"), "--network-config-dir", at("net"),
		"--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file",
	}
	return exec.Command("nsenter", append(all, args...)...)
}

// try runs podman and returns what it printed, standard error last.
func (e *engine) try(host string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := e.command(host, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return stdout.String() + stderr.String(), err
}

// podman is try for what must succeed; it returns the standard output alone.
func (e *engine) podman(host string, args ...string) string {
	e.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := e.command(host, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		e.t.Fatalf("podman %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// run starts a container in the background.
func (e *engine) run(host, name string, args ...string) {
	e.t.Helper()
	// Below what podman asks for and a sandbox may refuse.
	e.podman(host, append([]string{"run", "--detach", "--name", name, "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=2048:2048"}, args...)...)
	e.t.Cleanup(func() {
		if e.t.Failed() {
			log, _ := e.try(host, "logs", "--tail", "30", name)
			e.t.Logf("container %s printed:\n%s", name, log)
		}
		e.try(host, "rm", "--force", "--time", "2", name)
	})
}

// image builds the project's Containerfile, with the built adit in place of its
// first stage, for which there is no network.
func (e *engine) image(tag string) {
	e.t.Helper()
	text, err := os.ReadFile("../../build/container/Containerfile")
	if err != nil {
		e.t.Fatal(err)
	}
	_, final, found := strings.Cut(string(text), "\nFROM scratch\n")
	if !found {
		e.t.Fatal("the Containerfile has no final stage from scratch")
	}
	context := e.t.TempDir()
	if err := os.Mkdir(filepath.Join(context, "data"), 0o755); err != nil {
		e.t.Fatal(err)
	}
	copyFile(e.t, program, filepath.Join(context, "adit"), 0o755)
	certificates := filepath.Join(context, "etc/ssl/certs/ca-certificates.crt")
	e.write(certificates, "")
	e.write(filepath.Join(context, "Containerfile"), "FROM scratch AS build\nCOPY . /\nFROM scratch\n"+final)
	e.build(tag, context)
}

// build makes an image of what is in the folder context.
func (e *engine) build(tag, context string) {
	e.t.Helper()
	e.podman("relay", "build", "--quiet", "--layers=false", "--isolation", "chroot", "--tag", tag, context)
}

// write makes a file that everybody may read, and its folder.
func (e *engine) write(file, text string) {
	e.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		e.t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
