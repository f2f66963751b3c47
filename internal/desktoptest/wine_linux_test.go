package desktoptest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/internal/require"
)

// windows is a Windows of its own, in a network of its own, so that the daemon's
// fixed address meets no other. Tests share a few, as each takes long to make: a
// test has one from newWindows to its end.
type windows struct {
	t      *testing.T
	dir    string // holds all of it
	prefix string
	env    []string
	net    string // the network's name
	opened string // what the browser was given, line by line
}

const wine64 = "/usr/lib/wine/wine64"

// place is where a Windows is, or will be once a test needs it.
type place struct {
	make func() (*windows, error)
	end  []func()
}

// places are those that no test has. Programs in Wine wait for most of their
// time, so that two take little longer than one.
var places = func() chan *place {
	all := make(chan *place, 2)
	for i := range cap(all) {
		p := &place{}
		p.make = sync.OnceValues(func() (*windows, error) { return p.makeWindows(i) })
		all <- p
	}
	return all
}()

// endWindows ends all of them, which no test has any more.
func endWindows() {
	for range cap(places) {
		p := <-places
		for _, end := range slices.Backward(p.end) {
			end()
		}
	}
}

func newWindows(t *testing.T) *windows {
	t.Helper()
	require.Opted(t)
	require.Root(t)
	for _, tool := range []string{"Xvfb", "openbox", "xdotool", "import", "ip", "curl", "makensis", "wixl", "x86_64-w64-mingw32-as", "x86_64-w64-mingw32-ld"} {
		require.Tool(t, tool)
	}
	if _, err := os.Stat(wine64); err != nil {
		require.Missing(t, "Wine: %v", err)
	}
	p := <-places
	t.Cleanup(func() { places <- p })
	begin := time.Now()
	made, err := p.make()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a Windows: %.1f s", time.Since(begin).Seconds())
	w := *made
	w.t = t
	t.Cleanup(w.remove)
	return &w
}

func (p *place) makeWindows(number int) (*windows, error) {
	dir, err := shared()
	if err != nil {
		return nil, err
	}
	w := &windows{dir: filepath.Join(dir, fmt.Sprintf("windows%d", number)), net: fmt.Sprintf("aditwine%d-%d", os.Getpid(), number)}
	w.prefix, w.opened = filepath.Join(w.dir, "prefix"), filepath.Join(w.dir, "opened")
	if err := os.RemoveAll(w.dir); err != nil { // of an earlier run
		return nil, err
	}
	home, bin := filepath.Join(w.dir, "home"), filepath.Join(w.dir, "bin")
	for _, folder := range []string{home, bin, w.prefix} { // the server wants the last to exist
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\necho \"$1\" >>"+w.opened+"\n"), 0o755); err != nil {
		return nil, err
	}
	if said, err := exec.Command("ip", "netns", "add", w.net).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make a network: %w: %s", err, said)
	}
	p.end = append(p.end, func() { exec.Command("ip", "netns", "del", w.net).Run() })
	if said, err := exec.Command("ip", "-n", w.net, "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make a network: %w: %s", err, said)
	}
	display, endDisplay, err := startDisplay()
	if err != nil {
		return nil, err
	}
	p.end = append(p.end, endDisplay)
	w.env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "XDG_RUNTIME_DIR=" + home, "DISPLAY=" + display, "LANG=C.UTF-8",
		"WINEPREFIX=" + w.prefix, "WINEARCH=win64", "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=;winemenubuilder.exe=d",
	}
	wm := exec.Command("openbox")
	wm.Env = append(os.Environ(), w.env...)
	if err := wm.Start(); err != nil {
		return nil, err
	}
	p.end = append(p.end, func() { wm.Process.Kill(); wm.Wait() })

	// One that stays: a server that ends when nothing runs would start all
	// services anew with each program. It starts the system by itself with the
	// first program; a second start by hand gives two service managers, of which
	// each knows half of the services.
	server := "/usr/lib/wine/wineserver64"
	p.end = append(p.end, func() { w.inside(time.Minute, server, "-k", "-w") })
	if said, err := w.inside(time.Minute, server, "-p"); err != nil {
		return nil, fmt.Errorf("start Wine's server: %w: %s", err, said)
	}
	if said, err := w.run(patience, "cmd", "/c", "exit"); err != nil {
		return nil, fmt.Errorf("start Wine: %w: %s", err, said)
	}
	return w, w.shim()
}

// shim gives this Wine the one function that Go's programs want of a library
// which it does not have yet.
func (w *windows) shim() error {
	def, object, library := filepath.Join(w.dir, "bcp.def"), filepath.Join(w.dir, "empty.o"), w.file("windows/system32/bcryptprimitives.dll")
	if err := os.WriteFile(def, []byte("LIBRARY bcryptprimitives.dll\nEXPORTS\n  ProcessPrng=advapi32.SystemFunction036\n"), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"x86_64-w64-mingw32-as", "-o", object, "/dev/null"},
		{"x86_64-w64-mingw32-ld", "-shared", "-e", "0", "-o", library, def, object},
	} {
		if said, err := output(time.Minute, nil, args[0], args[1:]...); err != nil {
			return fmt.Errorf("make %s: %w: %s", filepath.Base(library), err, said)
		}
	}
	return nil
}

// inside runs a program of Linux in the Windows' network and environment.
func (w *windows) inside(limit time.Duration, name string, args ...string) (string, error) {
	return output(limit, w.env, "ip", append([]string{"netns", "exec", w.net, name}, args...)...)
}

// run runs a program of Windows to its end.
func (w *windows) run(limit time.Duration, args ...string) (string, error) {
	return w.inside(limit, wine64, args...)
}

// must is run whose failure ends the test.
func (w *windows) must(args ...string) string {
	w.t.Helper()
	begin := time.Now()
	out, err := w.run(patience, args...)
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	w.t.Logf("%.1f s: %s", time.Since(begin).Seconds(), strings.Join(args, " "))
	return out
}

// unmsi removes a package and waits until nothing of it is left. This Wine's
// installer does not wait for a service that it stops, as Windows' does, and
// leaves a program that runs.
func (w *windows) unmsi(file string) {
	w.t.Helper()
	w.must(adit, "service", "stop")
	w.msi("/x", file)
	w.removed()
	w.silent()
}

// msi installs or removes a package; if that fails, the test ends with what the
// installer says of it.
func (w *windows) msi(how, file string, properties ...string) {
	w.t.Helper()
	os.Remove(w.file("msi.log"))
	begin := time.Now()
	if out, err := w.run(patience, append([]string{"msiexec", how, file, "/qn", "/l*v", `C:\msi.log`}, properties...)...); err != nil {
		w.t.Fatalf("msiexec %s %s: %v\n%s%s", how, filepath.Base(file), err, out, w.msiLog())
	}
	w.t.Logf("%.1f s: msiexec %s %s", time.Since(begin).Seconds(), how, filepath.Base(file))
}

func (w *windows) msiLog() string {
	text, _ := os.ReadFile(w.file("msi.log"))
	return string(text)
}

// begin starts a program of Windows, which is to end by itself or by end. What it says
// is shown if the test fails.
func (w *windows) begin(args ...string) (ended <-chan error, end func()) {
	w.t.Helper()
	// Not a pipe: others that the program starts may hold that open for longer.
	said, err := os.Create(filepath.Join(w.t.TempDir(), "said.log"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer said.Close()
	w.t.Cleanup(func() {
		if text, err := os.ReadFile(said.Name()); w.t.Failed() {
			w.t.Logf("%s said %q, %v", strings.Join(args, " "), text, err)
		}
	})
	cmd := exec.Command("ip", append([]string{"netns", "exec", w.net, wine64}, args...)...)
	cmd.Env = append(os.Environ(), w.env...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	done, over := make(chan error, 1), make(chan struct{})
	go func() {
		done <- cmd.Wait()
		close(over)
	}()
	end = func() {
		cmd.Process.Kill()
		<-over
	}
	w.t.Cleanup(end)
	return done, end
}

// trays returns the processes of this Windows that are trays.
func (w *windows) trays() []int {
	w.t.Helper()
	var found []int
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, process := range processes {
		// What has ended meanwhile cannot be read.
		command, _ := os.ReadFile(process + "/cmdline")
		name, _, _ := strings.Cut(string(command), "\x00")
		environment, _ := os.ReadFile(process + "/environ")
		pid, err := strconv.Atoi(filepath.Base(process))
		if err == nil && strings.HasSuffix(name, "adit-tray.exe") && strings.Contains(string(environment), "WINEPREFIX="+w.prefix+"\x00") {
			found = append(found, pid)
		}
	}
	return found
}

// file returns where Linux has a file of drive C.
func (w *windows) file(path string) string { return filepath.Join(w.prefix, "drive_c", path) }

func (w *windows) exists(path string) bool {
	_, err := os.Stat(w.file(path))
	return err == nil
}

// get asks the daemon's local API.
func (w *windows) get(path string) (string, error) {
	return w.inside(20*time.Second, "curl", "-fsS", "-m", "10", "http://127.0.0.1:37271"+path)
}

// post is get with a document.
func (w *windows) post(path, body string) string {
	w.t.Helper()
	out, err := w.inside(time.Minute, "curl", "-sS", "-m", "45", "--fail-with-body", "-H", "Content-Type: application/json", "-d", body, "http://127.0.0.1:37271"+path)
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", path, err, out)
	}
	return out
}

// answers waits until a daemon of that version answers. If none does, the test ends with
// what is known of the service.
func (w *windows) answers(version string) {
	w.t.Helper()
	defer func() {
		if w.t.Failed() {
			status, err := w.run(time.Minute, adit, "service", "status")
			log, _ := os.ReadFile(w.file("ProgramData/Adit/log/adit.log"))
			w.t.Logf("the service: %s, %v; its log ends:\n%s", status, err, log[max(0, len(log)-4000):])
		}
	}()
	until(w.t, patience, "no daemon "+version+" answers", func() bool {
		out, err := w.get("/healthz")
		return err == nil && strings.Contains(out, `"version":"`+version+`"`)
	})
}

func (w *windows) silent() {
	w.t.Helper()
	until(w.t, patience, "a daemon still answers", func() bool {
		_, err := w.get("/healthz")
		return err != nil
	})
}

// has reports whether the registry has a key, or a value of it.
func (w *windows) has(key string, value ...string) bool {
	w.t.Helper()
	args := []string{"reg", "query", key}
	if len(value) > 0 {
		args = append(args, "/v", value[0])
	}
	out, err := w.run(patience, args...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("%s: %v\n%s", key, err, out)
	}
	return err == nil
}

// remove takes away what a failed test has left, for the next one.
func (w *windows) remove() {
	if len(w.trays()) > 0 {
		w.run(patience, "taskkill", "/F", "/IM", "adit-tray.exe")
	}
	if w.exists(programs + "uninstall.exe") {
		w.run(patience, `C:\Program Files\Adit\uninstall.exe`, "/S", "/PURGE", `_?=C:\Program Files\Adit`)
		os.Remove(w.file(programs + "uninstall.exe"))
		os.Remove(w.file("Program Files/Adit"))
	}
	if w.exists(programs + "adit.exe") {
		w.run(patience, `C:\Program Files\Adit\adit.exe`, "service", "uninstall")
		os.RemoveAll(w.file("Program Files/Adit"))
	}
	// This Wine gives services no environment of their own, so that the daemon
	// keeps its state where a person's would: another test must not find it.
	state, _ := filepath.Glob(w.file("users/*/AppData/*/Adit"))
	for _, folder := range append(state, w.file("ProgramData/Adit")) {
		os.RemoveAll(folder)
	}
	os.Remove(w.opened)
	// A service goes when its process has ended, and until then no other of its
	// name can be made.
	for _, key := range []string{serviceKey, uninstallKey} {
		until(w.t, patience, key+" is left for the next test", func() bool { return !w.has(key) })
	}
}

// nothing reports what an installation has left.
func (w *windows) nothing() {
	w.t.Helper()
	until(w.t, patience, "the program's folder is still there", func() bool { return !w.exists("Program Files/Adit") })
	for _, key := range []string{serviceKey, uninstallKey, eventKey} {
		if w.has(key) {
			w.t.Errorf("the registry still has %s", key)
		}
	}
	if w.has(runKey, "Adit") {
		w.t.Error("a tray would start at login")
	}
	if links := w.menuEntries(); len(links) > 0 {
		w.t.Errorf("left: %v", links)
	}
}

// removed waits until nothing of an MSI's installation is left. The service's
// declaration goes when its process has ended.
func (w *windows) removed() {
	w.t.Helper()
	for what, there := range map[string]func() bool{
		"the program":                func() bool { return w.exists(programs + "adit.exe") },
		"the service":                func() bool { return w.has(serviceKey) },
		"the tray's start at login":  func() bool { return w.has(runKey, "Adit") },
		"an entry of the Start menu": func() bool { return len(w.menuEntries()) > 0 },
	} {
		for deadline := time.Now().Add(patience); there(); time.Sleep(time.Second) {
			if time.Now().After(deadline) {
				w.t.Fatalf("%s is left\n%s", what, w.msiLog())
			}
		}
	}
}

// menuEntries returns the entries of the Start menu, everybody's and the person's.
func (w *windows) menuEntries() []string {
	var links []string
	for _, place := range []string{"ProgramData", "users/*/AppData/Roaming"} {
		found, _ := filepath.Glob(w.file(place + "/Microsoft/Windows/Start Menu/Programs/adit*"))
		links = append(links, found...)
	}
	return links
}

// openedPages returns what the browser was given.
func (w *windows) openedPages() string {
	text, _ := os.ReadFile(w.opened)
	return string(text)
}

// window waits for a window by its name and returns its number and size.
func (w *windows) window(name string) (id string, width, height int) {
	w.t.Helper()
	until(w.t, patience, "no window "+name, func() bool {
		out, err := output(time.Minute, w.env, "xdotool", "search", "--onlyvisible", "--name", name)
		id, _, _ = strings.Cut(out, "\n")
		if err != nil || id == "" {
			return false
		}
		out, err = output(time.Minute, w.env, "xdotool", "getwindowgeometry", "--shell", id)
		for line := range strings.Lines(out) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch key {
			case "WIDTH":
				width, _ = strconv.Atoi(value)
			case "HEIGHT":
				height, _ = strconv.Atoi(value)
			}
		}
		return err == nil && width > 1 && height > 1
	})
	return id, width, height
}

// pointer moves the pointer to a place in a window and clicks.
func (w *windows) pointer(id string, x, y, button int) {
	w.t.Helper()
	must(w.t, patience, w.env, "xdotool", "mousemove", "--window", id, strconv.Itoa(x), strconv.Itoa(y), "click", strconv.Itoa(button))
}

// shot saves what is on the screen where a person can look at it.
func (w *windows) shot(name string) {
	w.t.Helper()
	if dir := os.Getenv("ADIT_SCREENSHOTS"); dir != "" {
		must(w.t, patience, w.env, "import", "-window", "root", filepath.Join(dir, name+".png"))
	}
}

const (
	programs     = "Program Files/Adit/"
	adit         = `C:\Program Files\Adit\adit.exe`
	aditTray     = `C:\Program Files\Adit\adit-tray.exe`
	serviceKey   = `HKLM\SYSTEM\CurrentControlSet\Services\adit`
	eventKey     = `HKLM\SYSTEM\CurrentControlSet\Services\EventLog\Application\adit`
	uninstallKey = `HKLM\Software\Microsoft\Windows\CurrentVersion\Uninstall\Adit`
	runKey       = `HKLM\Software\Microsoft\Windows\CurrentVersion\Run`
)
