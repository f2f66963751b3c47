package desktoptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
)

func TestWindowsSetup(t *testing.T) {
	t.Parallel()
	w := newWindows(t)
	first, second := results(t, firstVersion), results(t, secondVersion)
	for _, step := range []struct {
		name string
		run  func(w *windows)
	}{
		{"installs silently", func(w *windows) { setupInstalls(w, one(w.t, first, "*-setup.exe")) }},
		{"service commands", serviceCommands},
		{"tray", trayClicked},
		{"replaces nothing while the program is in use", func(w *windows) { setupHeld(w, one(w.t, second, "*-setup.exe")) }},
		{"upgrades with the tray running", func(w *windows) { setupUpgrades(w, one(w.t, second, "*-setup.exe")) }},
		{"uninstall leaves nothing", setupUninstalls},
	} {
		ok := t.Run(step.name, func(t *testing.T) {
			here := *w
			here.t = t
			step.run(&here)
		})
		if !ok {
			return // each step stands on the one before
		}
	}
}

func setupInstalls(w *windows, setup string) {
	w.must(setup, "/S")
	w.answers("0.1.0")
	for _, name := range []string{"adit.exe", "adit-tray.exe", "uninstall.exe", "LICENSE.txt"} {
		if !w.exists(programs + name) {
			w.t.Errorf("%s is missing", name)
		}
	}
	for _, key := range []string{serviceKey, uninstallKey, eventKey} {
		if !w.has(key) {
			w.t.Errorf("the registry lacks %s", key)
		}
	}
	if !w.has(runKey, "Adit") || len(w.menuEntries()) != 1 {
		w.t.Errorf("the tray does not start at login, or the menu has %v", w.menuEntries())
	}
	if trays := w.trays(); len(trays) > 0 {
		w.t.Errorf("a silent setup has started trays %v", trays)
	}
	declared := w.must("reg", "query", serviceKey)
	for _, want := range []string{`NT AUTHORITY\LocalService`, `"C:\Program Files\Adit\adit.exe" start`, `ADIT_STATE_DIR=C:\ProgramData\Adit`, `ADIT_LOG_FILE=C:\ProgramData\Adit\log\adit.log`} {
		if !strings.Contains(declared, want) {
			w.t.Errorf("the service's declaration has no %s:\n%s", want, declared)
		}
	}
}

func serviceCommands(w *windows) {
	if out := w.must(adit, "service", "status"); !strings.Contains(out, "running (windows)") || !strings.Contains(out, "0.1.0") {
		w.t.Errorf("status: %s", out)
	}
	for range 2 { // the second time there is nothing to do
		w.must(adit, "service", "stop")
	}
	w.silent()
	if out, err := w.run(patience, adit, "service", "status"); err == nil || !strings.Contains(out, "stopped") {
		w.t.Errorf("status of a stopped service: %s, error %v", out, err)
	}
	w.must(adit, "service", "start")
	w.must(adit, "service", "restart")
	w.answers("0.1.0")
	w.must(adit, "service", "install") // over a running one, which then runs again
	w.answers("0.1.0")
	for range 2 {
		w.must(adit, "service", "uninstall")
	}
	if out, err := w.run(patience, adit, "service", "start"); err == nil || !strings.Contains(out, "run adit service install first") {
		w.t.Errorf("start without a service: %s, error %v", out, err)
	}
	// What an interrupted removal leaves.
	w.must("reg", "add", eventKey, "/v", "EventMessageFile", "/d", `C:\gone.exe`, "/f")
	w.must(adit, "service", "install")
	w.must(adit, "service", "start")
	w.answers("0.1.0")
}

// trayMenu opens the tray's menu and clicks at a part of its height. Wine draws
// its tray as a window of its own where the desktop has none.
func trayMenu(w *windows, part float64) {
	w.t.Helper()
	icon, _, _ := w.window("^Wine System Tray$")
	var menu string
	var height int
	until(w.t, patience, "the tray has no menu", func() bool {
		must(w.t, patience, w.env, "xdotool", "mousemove", "--window", icon, "10", "10", "click", "3")
		for range 20 {
			out, _ := output(time.Minute, w.env, "xdotool", "search", "--onlyvisible", "--class", "adit-tray.exe")
			for id := range strings.FieldsSeq(out) {
				var x, y, width int
				geometry, err := output(time.Minute, w.env, "xdotool", "getwindowgeometry", "--shell", id)
				if err != nil {
					continue
				}
				if _, err := fmt.Sscanf(geometry, "WINDOW="+id+"\nX=%d\nY=%d\nWIDTH=%d\nHEIGHT=%d", &x, &y, &width, &height); err == nil && height > 60 {
					menu = id
					return true
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		return false
	})
	w.shot("windows-menu")
	w.pointer(menu, 40, int(part*float64(height)), 1)
}

// The parts of the menu's height where its lines are, while there is no token:
// six lines and three separators.
const (
	lineToken = 0.467
	lineLogin = 0.659
	lineQuit  = 0.911
)

// trayChoose clicks at a line of the menu until that has its effect: Wine may
// lose a click that comes while it draws the menu.
func trayChoose(w *windows, part float64, what string, effect func() bool) {
	w.t.Helper()
	until(w.t, patience, what, func() bool {
		trayMenu(w, part)
		for limit := time.Now().Add(40 * time.Second); time.Now().Before(limit); time.Sleep(200 * time.Millisecond) {
			if effect() {
				return true
			}
		}
		return false
	})
}

// iconShown waits for the icon of a tray whose end is told by ended.
func (w *windows) iconShown(ended <-chan error) {
	w.t.Helper()
	icon, _, _ := w.window("^Wine System Tray$")
	until(w.t, patience, "no icon is in the tray", func() bool {
		select {
		case err := <-ended:
			w.t.Fatalf("the tray ended: %v", err)
		default:
		}
		out, err := output(time.Minute, w.env, "import", "-window", icon, "-format", "%k", "info:")
		var colours int
		_, scanErr := fmt.Sscan(out, &colours)
		return err == nil && scanErr == nil && colours > 4
	})
}

// beginTray starts a tray, and returns its process when it is about to show its
// icon: the window of an icon that was killed may still be there.
func (w *windows) beginTray() (processes []int, ended <-chan error) {
	w.t.Helper()
	locks := w.file("users/*/AppData/Local/Adit/tray.lock")
	left, _ := filepath.Glob(locks) // the pattern is well-formed
	for _, lock := range left {
		os.Remove(lock)
	}
	ended, _ = w.begin(aditTray)
	until(w.t, patience, "no tray runs", func() bool {
		lock, _ := filepath.Glob(locks)
		processes = w.trays()
		return len(lock) == 1 && len(processes) == 1
	})
	return processes, ended
}

func trayClicked(w *windows) {
	ended, _ := w.begin(aditTray)
	w.iconShown(ended)
	w.shot("windows-tray")
	trayChoose(w, lineToken, "the Web UI was not opened", func() bool { return strings.Contains(w.openedPages(), "http://127.0.0.1:37271/") })
	const declined = `HKCU\Software\Adit`
	trayChoose(w, lineLogin, "the tray still starts at login", func() bool { return w.has(declined, "NoTrayAtLogin") })
	if out, err := w.run(patience, aditTray, "--autostart"); err != nil {
		w.t.Errorf("a tray that is not wanted at login: %v\n%s", err, out)
	}
	trayChoose(w, lineLogin, "the tray does not start at login", func() bool { return !w.has(declined, "NoTrayAtLogin") })
	if out, err := w.run(patience, aditTray); err != nil {
		w.t.Errorf("a second tray did not end well: %v\n%s", err, out)
	}
	trayChoose(w, lineQuit, "the tray did not quit", func() bool {
		select {
		case err := <-ended:
			if err != nil {
				w.t.Errorf("quit: %v", err)
			}
			return true
		default:
			return false
		}
	})
}

// setupHeld has a person run the program in a terminal. A new tray beside the old
// program would be worse than the old ones.
func setupHeld(w *windows, setup string) {
	trayEnded, endTray := w.begin(aditTray)
	w.window("^Wine System Tray$")
	person := *w
	person.env = append(slices.Clone(w.env), `ADIT_STATE_DIR=C:\held`)
	defer os.RemoveAll(w.file("held"))
	held, end := person.begin(adit, "start", "--http_listen", "127.0.0.1:37298")
	until(w.t, patience, "the program does not run", func() bool {
		select {
		case err := <-held:
			w.t.Fatalf("the program in use has ended: %v", err)
		default:
		}
		_, err := w.inside(20*time.Second, "curl", "-fsS", "-m", "10", "http://127.0.0.1:37298/healthz")
		return err == nil
	})
	files := []string{"adit.exe", "adit-tray.exe"}
	var old [][]byte
	for _, name := range files {
		old = append(old, read(w.t, w.file(programs+name)))
	}
	out, err := w.run(patience, setup, "/S")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		w.t.Errorf("got %v, want exit code 3; %s", err, out)
	}
	for i, name := range files {
		if !bytes.Equal(old[i], read(w.t, w.file(programs+name))) {
			w.t.Errorf("%s was replaced", name)
		}
	}
	w.answers("0.1.0")
	select {
	case err := <-trayEnded:
		w.t.Errorf("the tray was ended: %v", err)
	case err := <-held:
		w.t.Errorf("the program in use was ended: %v", err)
	default:
	}
	end()
	endTray()
}

func setupUpgrades(w *windows, setup string) {
	before, ended := w.beginTray()
	old := read(w.t, w.file(programs+"adit-tray.exe"))
	w.must(setup, "/S")
	w.answers("0.2.0")
	if now := read(w.t, w.file(programs+"adit-tray.exe")); bytes.Equal(now, old) {
		w.t.Error("the tray's file is the old one")
	}
	w.cameBack(before, ended)
}

// cameBack checks that another tray has taken the place of the one before, whose
// end is told by ended, and that nothing of that one's is left.
func (w *windows) cameBack(before []int, ended <-chan error) {
	w.t.Helper()
	select {
	case <-ended:
	case <-time.After(patience):
		w.t.Error("the old tray still runs")
	}
	until(w.t, patience, "no tray has come back", func() bool {
		now := w.trays()
		return len(now) == 1 && !slices.Contains(before, now[0])
	})
	for _, left := range []string{"adit.exe.new", "adit.exe.old", "adit-tray.exe.new", "adit-tray.exe.old"} {
		until(w.t, patience, left+" is left", func() bool { return !w.exists(programs + left) })
	}
}

// setupUninstalls has an environment that lies about where programs keep their data.
func setupUninstalls(w *windows) {
	const lie = "lies/Adit/of a person.txt"
	if err := os.MkdirAll(filepath.Dir(w.file(lie)), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.file(lie), nil, 0o644); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.file("lies/run.bat"), []byte("set ProgramData=C:\\lies\r\n\"%~1\" %2 %3\r\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
	defer os.RemoveAll(w.file("lies"))
	w.must("cmd", "/c", `C:\lies\run.bat`, adit, "service", "install")
	if declared := w.must("reg", "query", serviceKey); !strings.Contains(declared, `ADIT_STATE_DIR=C:\ProgramData\Adit`) {
		w.t.Errorf("the service keeps its state where the environment says:\n%s", declared)
	}
	// Another person, who is signed in too.
	const theirs = `HKU\S-1-5-21-1-2-3-1002\Software`
	const theirRun = theirs + `\Microsoft\Windows\CurrentVersion\Run`
	defer w.run(patience, "reg", "delete", `HKU\S-1-5-21-1-2-3-1002`, "/f")
	w.must("reg", "add", theirRun, "/v", "Adit", "/d", `"C:\Program Files\Adit\adit-tray.exe"`, "/f")
	w.must("reg", "add", theirRun, "/v", "Other", "/d", "other.exe", "/f")
	w.must("reg", "add", theirs+`\Adit`, "/v", "NoTrayAtLogin", "/d", "1", "/f")
	if !w.has(theirRun, "Adit") {
		w.t.Fatal("there is no other person's registry")
	}
	// It goes on as a copy of itself, after the first program has ended.
	w.must("cmd", "/c", `C:\lies\run.bat`, `C:\Program Files\Adit\uninstall.exe`, "/S", "/PURGE")
	w.nothing()
	if w.has(theirRun, "Adit") || w.has(theirs+`\Adit`) || !w.has(theirRun, "Other") {
		w.t.Errorf("another person's: starts the tray at login %t, has adit's key %t, what is not adit's %t",
			w.has(theirRun, "Adit"), w.has(theirs+`\Adit`), w.has(theirRun, "Other"))
	}
	w.silent()
	until(w.t, patience, "the configuration is still there", func() bool { return !w.exists("ProgramData/Adit") })
	if trays := w.trays(); len(trays) > 0 || !w.exists(lie) {
		w.t.Errorf("trays %v are left; a folder that is not adit's is there: %t", trays, w.exists(lie))
	}
}

func TestWindowsSetupByClicks(t *testing.T) {
	t.Parallel()
	w := newWindows(t)
	setup := one(t, results(t, firstVersion), "*-setup.exe")
	next := func(name string) {
		t.Helper()
		id, width, height := w.window(name)
		w.pointer(id, width*727/1000, height*936/1000, 1)
	}
	ended, _ := w.begin(setup)
	over := func() bool {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("it ended: %v", err)
			}
			return true
		default:
			return false
		}
	}
	w.window("^adit Setup")
	w.shot("setup-license")
	begin := time.Now()
	next("^adit Setup") // I Agree, which also installs
	w.answers("0.1.0")
	t.Logf("installed and answering after %.1f s", time.Since(begin).Seconds())
	until(t, patience, "the entry in the list of programs is missing", func() bool { return w.exists(programs+"uninstall.exe") && w.has(uninstallKey, "EstimatedSize") })
	w.shot("setup-done")
	// Finish, which opens the Web UI. The page may not be drawn yet.
	deadline := time.Now().Add(patience)
	for !over() {
		if time.Now().After(deadline) {
			t.Fatal("the setup program does not end")
		}
		if _, err := output(time.Minute, w.env, "xdotool", "search", "--onlyvisible", "--name", "^adit Setup"); err == nil {
			next("^adit Setup")
		}
		time.Sleep(time.Second)
	}
	until(t, patience, "the Web UI was not opened at the end", func() bool { return strings.Contains(w.openedPages(), "http://127.0.0.1:37271/") })

	ended, _ = w.begin(`C:\Program Files\Adit\uninstall.exe`)
	w.window("^adit Uninstall")
	w.shot("uninstall")
	next("^adit Uninstall") // Uninstall
	w.nothing()
	deadline = time.Now().Add(patience)
	for {
		if _, err := output(time.Minute, w.env, "xdotool", "search", "--onlyvisible", "--name", "^adit Uninstall"); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the uninstaller does not end")
		}
		next("^adit Uninstall") // Close
		time.Sleep(time.Second)
	}
	if !w.exists("ProgramData/Adit") {
		t.Error("the configuration is gone, and nobody asked for that")
	}
}

func TestWindowsMSICarriesATunnel(t *testing.T) {
	t.Parallel()
	require.Tool(t, "curl")
	w := newWindows(t)
	first, second := one(t, results(t, firstVersion), "*.msi"), one(t, results(t, secondVersion), "*.msi")
	w.msi("/i", first)
	w.answers("0.1.0")
	w.must(adit, "service", "mend") // which this Wine's installer does not call
	if declared := w.must("reg", "query", serviceKey); !strings.Contains(declared, `"C:\Program Files\Adit\adit.exe" start`) || !strings.Contains(declared, "LocalService") {
		t.Errorf("the service's declaration:\n%s", declared)
	}
	relay := w.startRelay()
	w.post("/api/v1/auth/configure", `{"auth_token":"`+relay.token+`"}`)
	var made struct {
		Data struct {
			PublicURL string `json:"public_url"`
		}
	}
	if err := json.Unmarshal([]byte(w.post("/api/v1/tunnels", fmt.Sprintf(`{"type":"http","local_port":%d}`, relay.origin))), &made); err != nil || made.Data.PublicURL == "" {
		t.Fatalf("got tunnel %+v, error %v", made, err)
	}
	visit := func() {
		t.Helper()
		until(t, patience, made.Data.PublicURL+" does not show the origin", func() bool {
			out, err := w.inside(30*time.Second, "curl", "-fsS", "-m", "20", made.Data.PublicURL)
			return err == nil && out == originSays
		})
	}
	visit()
	// This Wine has no datagrams for Go's programs, so the session is over TLS.
	if out, err := w.get("/api/v1/status"); err != nil || !strings.Contains(out, `"transport":"tls"`) {
		t.Errorf("status: %s, error %v", out, err)
	}
	w.msi("/i", second)
	w.answers("0.2.0")
	visit() // with the token and the tunnel of before
	w.unmsi(second)
}

func TestWindowsMSIBringsTheTrayBack(t *testing.T) {
	t.Parallel()
	w := newWindows(t)
	first, second := one(t, results(t, firstVersion), "*.msi"), one(t, results(t, secondVersion), "*.msi")
	w.msi("/i", first)
	w.answers("0.1.0")
	before, ended := w.beginTray()
	old := read(t, w.file(programs+"adit-tray.exe"))
	// As Windows Installer has the old version removed by its own package on an update,
	// of which this Wine's does not tell that package.
	w.msi("/i", first, "REMOVE=ALL", "UPGRADINGPRODUCTCODE={6C1F6F0E-8D0B-5F3B-9A53-1D7B8A6C7E12}")
	w.msi("/i", second)
	w.answers("0.2.0")
	if now := read(t, w.file(programs+"adit-tray.exe")); bytes.Equal(now, old) {
		t.Error("the tray's file is the old one")
	}
	w.cameBack(before, ended)
	w.unmsi(second)
	if trays := w.trays(); len(trays) > 0 || w.exists(programs+"adit-tray.exe.old") {
		t.Errorf("removed, trays %v are left, or their file is", trays)
	}
}

// nativeRelay is a relay of Linux in the Windows' network.
type nativeRelay struct {
	token  string
	origin int // the port of a page to publish
}

func (w *windows) startRelay() nativeRelay {
	w.t.Helper()
	exe := released(w.t, firstVersion)
	var relay nativeRelay
	dir := w.t.TempDir()
	start := func(file string, env []string, args ...string) {
		out, err := os.Create(filepath.Join(dir, file))
		if err != nil {
			w.t.Fatal(err)
		}
		cmd := exec.Command("ip", append([]string{"netns", "exec", w.net}, args...)...)
		cmd.Env = append(append(os.Environ(), w.env...), env...)
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
			out.Close()
			if w.t.Failed() {
				w.t.Logf("%s: %s", file, read(w.t, out.Name()))
			}
		})
	}
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	start("origin", []string{envOrigin + "=1"}, self)
	const any = "127.0.0.1:0"
	start("dev", []string{"TMPDIR=" + dir}, exe, "dev", "--json", "--http_listen", any, "--tunnel_listen", any, "--edge_http_listen", any, "--edge_https_listen", any, "--console_listen", any)
	var report struct {
		Console    string `json:"console"`
		AdminToken string `json:"admin_token"`
	}
	until(w.t, patience, "the relay does not run", func() bool {
		fmt.Sscan(string(read(w.t, filepath.Join(dir, "origin"))), &relay.origin)
		for line := range strings.Lines(string(read(w.t, filepath.Join(dir, "dev")))) {
			if json.Unmarshal([]byte(line), &report) == nil && report.Console != "" {
				return relay.origin > 0
			}
		}
		return false
	})
	out, err := output(time.Minute, append(w.env, "ADIT_RELAY_ADMIN_URL="+report.Console, "ADIT_RELAY_ADMIN_TOKEN="+report.AdminToken),
		"ip", "netns", "exec", w.net, exe, "relay", "client", "add", "windows", "--json")
	var client struct {
		Token string `json:"auth_token"`
	}
	if err != nil || json.Unmarshal([]byte(out), &client) != nil || client.Token == "" {
		w.t.Fatalf("add a client: %v: %s", err, out)
	}
	relay.token = client.Token
	return relay
}
