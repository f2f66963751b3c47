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
	"slices"
	"strings"
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
	d.exe = d.build()

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

func (d *desktop) build() string {
	d.t.Helper()
	dir, err := shared()
	if err != nil {
		d.t.Fatal(err)
	}
	exe := filepath.Join(dir, "standin")
	must(d.t, 5*time.Minute, []string{"CGO_ENABLED=0"}, "go", "build", "-o", exe, "./standin")
	return exe
}

// startX takes the first display that is free, which the server tells.
func (d *desktop) startX() string {
	d.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "900x600x24", "-nolisten", "tcp", "-noreset")
	cmd.ExtraFiles = []*os.File{w}
	d.own(cmd)
	w.Close()
	r.SetReadDeadline(time.Now().Add(60 * time.Second))
	// All of the line: the server writes its end apart, and dies of a pipe that
	// has been closed by then.
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		d.t.Fatalf("Xvfb told no display: %q, %v", line, err)
	}
	return ":" + strings.TrimSpace(line)
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
	until(d.t, 20*time.Second, "the session bus does not answer", func() bool {
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
	until(d.t, 20*time.Second, "the daemon wrote no runtime.json", func() bool {
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

// tray is a running `adit tray`.
type tray struct {
	*desktop
	cmd   *exec.Cmd
	ended chan struct{}
	said  *bytes.Buffer // to be read when ended
	err   error
}

func (d *desktop) startTray() *tray {
	d.t.Helper()
	cmd := exec.Command(d.exe, "tray")
	cmd.Env = d.env
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	t := &tray{desktop: d, cmd: cmd, ended: make(chan struct{}), said: &said}
	go func() {
		t.err = cmd.Wait()
		close(t.ended)
	}()
	d.t.Cleanup(func() {
		cmd.Process.Kill()
		<-t.ended
	})
	return t
}

func (t *tray) name() string {
	return fmt.Sprintf("org.kde.StatusNotifierItem-%d-1", t.cmd.Process.Pid)
}

func (d *desktop) owned(name string) bool {
	var has bool
	err := d.bus.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, name).Store(&has)
	return err == nil && has
}

func (d *desktop) registered() []string {
	v, err := d.bus.Object("org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher").
		GetProperty("org.kde.StatusNotifierWatcher.RegisteredStatusNotifierItems")
	if err != nil {
		return nil
	}
	items, _ := v.Value().([]string)
	return items
}

// line is one line of the menu as the desktop gets it.
type line struct {
	id    int32
	label string
	on    bool
	state int32
	lines []line
}

type layout struct {
	ID       int32
	Props    map[string]dbus.Variant
	Children []dbus.Variant
}

func (t *tray) menu() []line {
	var revision uint32
	var root layout
	err := t.bus.Object(t.name(), "/StatusNotifierItem/menu").
		Call("com.canonical.dbusmenu.GetLayout", 0, int32(0), int32(-1), []string{}).Store(&revision, &root)
	if err != nil {
		return nil
	}
	return children(root)
}

func children(l layout) []line {
	var lines []line
	for _, child := range l.Children {
		var c layout
		if err := dbus.Store([]any{child.Value()}, &c); err != nil {
			continue
		}
		item := line{id: c.ID, on: true, lines: children(c)}
		if v, ok := c.Props["label"].Value().(string); ok {
			item.label = strings.ReplaceAll(v, "__", "_")
		}
		if v, ok := c.Props["enabled"].Value().(bool); ok {
			item.on = v
		}
		if v, ok := c.Props["toggle-state"].Value().(int32); ok {
			item.state = v
		}
		lines = append(lines, item)
	}
	return lines
}

func find(lines []line, prefix string) (line, bool) {
	for _, l := range lines {
		if strings.HasPrefix(l.label, prefix) {
			return l, true
		}
		if inner, ok := find(l.lines, prefix); ok {
			return inner, true
		}
	}
	return line{}, false
}

// await waits until the menu has an enabled or disabled line that begins so.
func (t *tray) await(prefix string) line {
	t.t.Helper()
	var found line
	until(t.t, 20*time.Second, "the menu has no line "+prefix, func() bool {
		var ok bool
		found, ok = find(t.menu(), prefix)
		return ok
	})
	return found
}

// click sends what a panel sends for a click.
func (t *tray) click(prefix string) {
	t.t.Helper()
	l := t.await(prefix)
	if !l.on {
		t.t.Fatalf("%s cannot be clicked", prefix)
	}
	call := t.bus.Object(t.name(), "/StatusNotifierItem/menu").
		Call("com.canonical.dbusmenu.Event", 0, l.id, "clicked", dbus.MakeVariant(int32(0)), uint32(0))
	if call.Err != nil {
		t.t.Fatal(call.Err)
	}
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
	must(d.t, 20*time.Second, d.env, "import", "-window", "root", file)
}

// colours counts the colours in the panel's corner where the icon is.
func (d *desktop) colours() int {
	d.t.Helper()
	file := filepath.Join(d.dir, "panel.png")
	must(d.t, 20*time.Second, d.env, "import", "-window", "root", "-crop", "60x32+0+0", file)
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
	out := must(d.t, 20*time.Second, d.env, "import", "-window", "root", "-crop", part, "-format", "%[fx:mean]", "info:")
	return !strings.HasPrefix(out, "0") || strings.Trim(out, "0.") != ""
}

var (
	up       = client.Status{Configured: true, Connected: true, State: "connected", Relay: "relay.example:4433", Version: "9.9"}
	shop     = client.Endpoint{ID: "e1", TunnelID: "t1", Name: "shop", Type: "https", PublicURL: "https://my_shop.example", Local: "127.0.0.1:3000", State: "running"}
	terminal = client.Endpoint{ID: "e2", TunnelID: "t2", Name: "ssh", Type: "tcp", PublicURL: "tcp://relay.example:20001", Local: "127.0.0.1:22", State: "running"}
)

func TestTrayInAPanel(t *testing.T) {
	d := newDesktop(t)
	panel := d.start("xfce4-panel", "--disable-wm-check")
	until(t, 30*time.Second, "the panel has no tray", func() bool { return d.owned("org.kde.StatusNotifierWatcher") })
	tr := d.startTray()
	begin := time.Now()
	until(t, 20*time.Second, "the icon is not registered", func() bool { return len(d.registered()) == 1 })
	t.Logf("icon registered after %d ms", time.Since(begin).Milliseconds())

	tr.await("No auth token yet")
	tr.click("Enter the auth token")
	until(t, 20*time.Second, "the Web UI was not opened", func() bool { return slices.Contains(d.openedPages(), d.api+"/") })

	d.set(up, shop, terminal)
	tr.await("Connected · relay.example:4433")
	tr.await("tcp://relay.example:20001")
	until(t, 20*time.Second, "no icon is to be seen in the panel", func() bool { return d.colours() > 6 })
	d.shot("tray-connected")

	tr.click("https://my_shop.example → ")
	until(t, 20*time.Second, "the address was not copied", func() bool {
		out, _ := command(t, 5*time.Second, d.env, "xclip", "-o", "-selection", "clipboard")
		return out == shop.PublicURL
	})
	tr.click("Open in the browser")
	until(t, 20*time.Second, "the page was not opened", func() bool { return slices.Contains(d.openedPages(), shop.PublicURL) })
	tr.click("Show QR code")
	until(t, 20*time.Second, "the QR code was not opened", func() bool { return slices.Contains(d.openedPages(), d.api+"/#/tunnels/t1") })

	tr.click("Pause")
	tr.await("Paused")
	tr.click("Resume")
	tr.await("Connected")
	tr.click("Reconnect")
	until(t, 20*time.Second, "the daemon was not told to reconnect", func() bool {
		return slices.Equal(d.orders(), []string{"pause", "resume", "reconnect"})
	})

	own := filepath.Join(d.dir, "home/.config/autostart/adit-tray.desktop")
	tr.click("Start at login")
	until(t, 20*time.Second, "nothing starts at login", func() bool { _, err := os.Stat(own); return err == nil })
	until(t, 20*time.Second, "the menu has no mark at Start at login", func() bool { l, _ := find(tr.menu(), "Start at login"); return l.state == 1 })
	tr.click("Start at login")
	until(t, 20*time.Second, "it still starts at login", func() bool { _, err := os.Stat(own); return err != nil })

	d.set(client.Status{Configured: true, State: "reconnecting", LastError: "no route to the relay", Version: "9.9"})
	tr.await("Reconnecting: no route to the relay")
	v, err := d.bus.Object(tr.name(), "/StatusNotifierItem").GetProperty("org.kde.StatusNotifierItem.ToolTip")
	if err != nil || !strings.Contains(fmt.Sprint(v), "Reconnecting: no route") {
		t.Errorf("got tooltip %v, error %v", v, err)
	}
	d.shot("tray-reconnecting")

	// A real pointer: the menu opens under the icon, and its keyboard works.
	d.set(up, shop)
	tr.await("Connected")
	must(t, 20*time.Second, d.env, "xdotool", "mousemove", "16", "16", "click", "3")
	until(t, 20*time.Second, "the menu does not open by a click", func() bool { return d.drawn("200x100+0+40") })
	d.shot("tray-menu")
	must(t, 20*time.Second, d.env, "xdotool", "key", "Escape")

	second, err := command(t, 20*time.Second, d.env, d.exe, "tray")
	if err != nil || !strings.Contains(second, "running already") {
		t.Errorf("a second tray: got %q, error %v", second, err)
	}
	rss, _ := command(t, 5*time.Second, nil, "ps", "-o", "rss=", "-p", fmt.Sprint(tr.cmd.Process.Pid))
	t.Logf("tray resident memory: %s kB", rss)

	// The panel restarts, and the icon comes back.
	syscall.Kill(-panel.Process.Pid, syscall.SIGKILL)
	until(t, 20*time.Second, "the panel is still there", func() bool { return !d.owned("org.kde.StatusNotifierWatcher") })
	d.start("xfce4-panel", "--disable-wm-check")
	until(t, 30*time.Second, "the icon did not come back with the panel", func() bool { return len(d.registered()) == 1 })

	tr.click("Quit")
	select {
	case <-tr.ended:
		if tr.err != nil {
			t.Errorf("quit: %v\n%s", tr.err, tr.said)
		}
	case <-time.After(20 * time.Second):
		t.Error("the tray did not quit")
	}
}

// notifications is a notification server that remembers.
type notifications struct{ got chan string }

func (n notifications) Notify(_ string, _ uint32, _, title, body string, _ []string, _ map[string]dbus.Variant, _ int32) (uint32, *dbus.Error) {
	n.got <- title + "|" + body
	return 1, nil
}

func (d *desktop) listenNotifications() <-chan string {
	d.t.Helper()
	n := notifications{make(chan string, 100)}
	const name = "org.freedesktop.Notifications"
	if err := d.bus.Export(n, "/org/freedesktop/Notifications", name); err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.bus.RequestName(name, dbus.NameFlagDoNotQueue); err != nil {
		d.t.Fatal(err)
	}
	return n.got
}

func TestTrayWithoutAPanelSaysSo(t *testing.T) {
	d := newDesktop(t)
	told := d.listenNotifications()
	tr := d.startTray()
	select {
	case got := <-told:
		if !strings.Contains(got, "AppIndicator") {
			t.Errorf("got notification %q, want what is missing", got)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was told")
	}
	d.set(up, shop)
	tr.await("Connected")
	d.set(client.Status{Configured: true, State: "reconnecting", LastError: "no route", Version: "9.9"})
	tr.await("Reconnecting")
	d.set(up, shop)
	tr.await("Connected")
	var got []string
	for len(got) < 2 {
		select {
		case n := <-told:
			got = append(got, n)
		case <-time.After(20 * time.Second):
			t.Fatalf("got notifications %q, want two", got)
		}
	}
	t.Logf("notifications: %q", got)
	if !slices.ContainsFunc(got, func(s string) bool { return s == "Connection lost|no route" }) || !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "Connected again|") }) {
		t.Errorf("got notifications %q", got)
	}
	// The panel would wait for more of a notification server than this one can.
	if _, err := d.bus.ReleaseName("org.freedesktop.Notifications"); err != nil {
		t.Fatal(err)
	}
	d.start("xfce4-panel", "--disable-wm-check")
	until(t, 30*time.Second, "the late panel has no tray", func() bool { return d.owned("org.kde.StatusNotifierWatcher") })
	until(t, 10*time.Second, "the icon does not come with a late panel", func() bool { return len(d.registered()) == 1 })
}

func TestTrayEndsWithTheSession(t *testing.T) {
	d := newDesktop(t)
	tr := d.startTray()
	until(t, 20*time.Second, "the tray is not on the bus", func() bool { return d.owned(tr.name()) })
	syscall.Kill(-d.busProc.Process.Pid, syscall.SIGKILL)
	select {
	case <-tr.ended:
		if tr.err != nil || strings.Contains(tr.said.String(), "panic") {
			t.Errorf("got error %v\n%s", tr.err, tr.said)
		}
	case <-time.After(20 * time.Second):
		t.Error("the tray outlives its session bus")
	}
}

func TestTrayWithoutABusSaysSo(t *testing.T) {
	d := newDesktop(t)
	env := slices.DeleteFunc(slices.Clone(d.env), func(s string) bool {
		return strings.HasPrefix(s, "DBUS_SESSION_BUS_ADDRESS=") || strings.HasPrefix(s, "XDG_RUNTIME_DIR=")
	})
	cmd := exec.Command(d.exe, "tray")
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "no session bus") {
		t.Errorf("got %q, error %v, want a plain message", out, err)
	}
}

func TestLauncherOpensTheWebUI(t *testing.T) {
	d := newDesktop(t)
	cmd := exec.Command(d.exe, "tray", "--open")
	cmd.Env = slices.DeleteFunc(slices.Clone(d.env), func(s string) bool {
		return strings.HasPrefix(s, "DBUS_SESSION_BUS_ADDRESS=") || strings.HasPrefix(s, "XDG_RUNTIME_DIR=")
	})
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	until(t, 20*time.Second, "the Web UI was not opened", func() bool { return slices.Contains(d.openedPages(), d.api+"/") })
}
