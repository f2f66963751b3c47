package desktoptest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"adit/internal/require"
	"adit/localapi/client"
)

// desktop is a screen with a session bus of its own, and a stand-in daemon.
type desktop struct {
	t       *testing.T
	dir     string
	env     []string
	exe     string
	display string
	bus     *dbus.Conn
	busProc *exec.Cmd
	api     string
	opened  string // what xdg-open was given, line by line
}

// newDesktop starts the screen, the bus and the daemon, but no panel.
func newDesktop(t *testing.T) *desktop {
	t.Helper()
	require.Opted(t)
	for _, tool := range []string{"Xvfb", "dbus-daemon", "openbox", "xfce4-panel", "xdotool", "xclip", "import"} {
		require.Tool(t, tool)
	}
	d := &desktop{t: t, dir: t.TempDir()}
	for _, sub := range []string{"home/.config/xfce4/xfconf/xfce-perchannel-xml", "run", "bin", "state"} {
		if err := os.MkdirAll(filepath.Join(d.dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	panel, err := os.ReadFile("testdata/xfce4-panel.xml")
	if err != nil {
		t.Fatal(err)
	}
	d.write("home/.config/xfce4/xfconf/xfce-perchannel-xml/xfce4-panel.xml", string(panel), 0o600)
	d.opened = filepath.Join(d.dir, "opened")
	d.write("bin/xdg-open", "#!/bin/sh\necho \"$1\" >>"+d.opened+"\n", 0o755)
	if d.exe, err = standin(); err != nil {
		t.Fatal(err)
	}
	d.display = d.startX()
	d.env = []string{
		"PATH=" + filepath.Join(d.dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(d.dir, "home"),
		"XDG_RUNTIME_DIR=" + filepath.Join(d.dir, "run"), "XDG_CONFIG_DIRS=" + filepath.Join(d.dir, "home"),
		"DISPLAY=" + d.display, "LANG=C.UTF-8", "XDG_CURRENT_DESKTOP=XFCE", "NO_AT_BRIDGE=1",
		"ADIT_STATE_DIR=" + filepath.Join(d.dir, "state"), "ADIT_CONFIG_DIR=" + filepath.Join(d.dir, "state"),
	}
	d.startBus()
	d.start("openbox")
	d.startDaemon()
	return d
}

func (d *desktop) write(name, text string, mode os.FileMode) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), mode); err != nil {
		d.t.Fatal(err)
	}
}

// standin builds the program with the stand-in daemon, once.
var standin = sync.OnceValues(func() (string, error) {
	dir, err := shared()
	if err != nil {
		return "", err
	}
	exe := filepath.Join(dir, "standin")
	if said, err := output(5*time.Minute, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", exe, "./standin"); err != nil {
		return "", fmt.Errorf("build the stand-in: %w: %s", err, said)
	}
	return exe, nil
})

// startX starts a screen for the time of a test.
func (d *desktop) startX() string {
	d.t.Helper()
	display, end, err := startDisplay()
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(end)
	return display
}

// startDisplay takes the first display that is free, which the server tells.
func startDisplay() (display string, end func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	defer r.Close()
	cmd := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "900x600x24", "-nolisten", "tcp", "-noreset")
	cmd.ExtraFiles = []*os.File{w}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return "", nil, err
	}
	end = func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
	r.SetReadDeadline(time.Now().Add(time.Minute))
	// All of the line: the server writes its end apart, and dies of a pipe that
	// has been closed by then.
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		end()
		return "", nil, fmt.Errorf("Xvfb told no display: %q, %w", line, err)
	}
	return ":" + strings.TrimSpace(line), end, nil
}

func (d *desktop) startBus() {
	d.t.Helper()
	address := "unix:path=" + filepath.Join(d.dir, "run", "bus")
	cmd := exec.Command("dbus-daemon", "--session", "--nofork", "--nopidfile", "--address="+address)
	cmd.Env = d.env
	d.logged(cmd, "bus")
	d.own(cmd)
	d.busProc = cmd
	d.env = append(d.env, "DBUS_SESSION_BUS_ADDRESS="+address)
	until(d.t, time.Minute, "the session bus does not answer", func() bool {
		conn, err := dbus.Connect(address)
		if err == nil {
			d.bus = conn
		}
		return err == nil
	})
	d.t.Cleanup(func() { d.bus.Close() })
}

// own starts cmd and ends it with the test.
func (d *desktop) own(cmd *exec.Cmd) {
	d.t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
}

func (d *desktop) start(name string, args ...string) *exec.Cmd {
	d.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = d.env
	d.logged(cmd, filepath.Base(name))
	d.own(cmd)
	return cmd
}

// logged has what cmd says shown if the test fails.
func (d *desktop) logged(cmd *exec.Cmd, name string) {
	d.t.Helper()
	log, err := os.CreateTemp(d.dir, name+"-")
	if err != nil {
		d.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	d.t.Cleanup(func() {
		log.Close()
		if said, err := os.ReadFile(log.Name()); err == nil && d.t.Failed() {
			d.t.Logf("%s said:\n%s", name, said)
		}
	})
}

func (d *desktop) startDaemon() {
	d.t.Helper()
	d.start(d.exe, "start", "--http_listen", "127.0.0.1:0")
	file := filepath.Join(d.dir, "state", "runtime.json")
	until(d.t, time.Minute, "the daemon wrote no runtime.json", func() bool {
		text, err := os.ReadFile(file)
		var info struct {
			Addr string `json:"connect_addr"`
		}
		if err != nil || json.Unmarshal(text, &info) != nil {
			return false
		}
		d.api = "http://" + info.Addr
		return true
	})
}

// set changes what the daemon says.
func (d *desktop) set(status client.Status, endpoints ...client.Endpoint) {
	d.t.Helper()
	body, err := json.Marshal(map[string]any{"Status": status, "Endpoints": endpoints})
	if err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.Post(d.api+"/test", "application/json", bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	resp.Body.Close()
}

func (d *desktop) orders() []string {
	d.t.Helper()
	resp, err := http.Get(d.api + "/test")
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	var orders struct{ Data []string }
	if err := json.NewDecoder(resp.Body).Decode(&orders); err != nil {
		d.t.Fatal(err)
	}
	return orders.Data
}

func (d *desktop) openedPages() []string {
	text, _ := os.ReadFile(d.opened)
	return strings.Fields(string(text))
}

// shot saves what is on the screen where a person can look at it.
func (d *desktop) shot(name string) {
	d.t.Helper()
	dir := os.Getenv("ADIT_SCREENSHOTS")
	if dir == "" {
		dir = d.dir
	}
	file := filepath.Join(dir, name+".png")
	must(d.t, patience, d.env, "import", "-window", "root", file)
}

// colours counts the colours in the panel's corner where the icon is.
func (d *desktop) colours() int {
	d.t.Helper()
	file := filepath.Join(d.dir, "panel.png")
	must(d.t, patience, d.env, "import", "-window", "root", "-crop", "60x32+0+0", file)
	f, err := os.Open(file)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		d.t.Fatal(err)
	}
	seen := map[[3]uint32]bool{}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			r, g, b, _ := img.At(x, y).RGBA()
			seen[[3]uint32{r >> 11, g >> 11, b >> 11}] = true
		}
	}
	return len(seen)
}

// drawn reports whether something is on a part of the screen that is else black.
func (d *desktop) drawn(part string) bool {
	d.t.Helper()
	out := must(d.t, patience, d.env, "import", "-window", "root", "-crop", part, "-format", "%[fx:mean]", "info:")
	return !strings.HasPrefix(out, "0") || strings.Trim(out, "0.") != ""
}
