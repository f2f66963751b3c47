package desktoptest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"adit/localapi/client"
)

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
	until(t.t, time.Minute, "the menu has no line "+prefix, func() bool {
		var ok bool
		found, ok = find(t.menu(), prefix)
		return ok
	})
	return found
}

// click sends what a panel sends for a click.
func (t *tray) click(prefix string) {
	t.t.Helper()
	if err := t.event(prefix); err != nil {
		t.t.Fatal(err)
	}
}

// quit clicks Quit. The tray may be gone before its answer is.
func (t *tray) quit() {
	t.t.Helper()
	var gone dbus.Error
	if err := t.event("Quit"); err != nil && !(errors.As(err, &gone) && gone.Name == "org.freedesktop.DBus.Error.NoReply") {
		t.t.Fatal(err)
	}
}

func (t *tray) event(prefix string) error {
	t.t.Helper()
	l := t.await(prefix)
	if !l.on {
		t.t.Fatalf("%s cannot be clicked", prefix)
	}
	return t.bus.Object(t.name(), "/StatusNotifierItem/menu").
		Call("com.canonical.dbusmenu.Event", 0, l.id, "clicked", dbus.MakeVariant(int32(0)), uint32(0)).Err
}

var (
	up       = client.Status{Configured: true, Connected: true, State: "connected", Relay: "relay.example:4433", Version: "9.9"}
	shop     = client.Endpoint{ID: "e1", TunnelID: "t1", Name: "shop", Type: "https", PublicURL: "https://my_shop.example", Local: "127.0.0.1:3000", State: "running"}
	terminal = client.Endpoint{ID: "e2", TunnelID: "t2", Name: "ssh", Type: "tcp", PublicURL: "tcp://relay.example:20001", Local: "127.0.0.1:22", State: "running"}
)

func TestTrayInAPanel(t *testing.T) {
	t.Parallel()
	const system = "/etc/xdg/autostart/adit-tray.desktop"
	if _, err := os.Stat(system); err == nil {
		t.Fatalf("%s is there: to turn Start at login off and on is something else where adit's package is installed", system)
	}
	d := newDesktop(t)
	panel := d.start("xfce4-panel", "--disable-wm-check")
	until(t, time.Minute, "the panel has no tray", func() bool { return d.owned("org.kde.StatusNotifierWatcher") })
	tr := d.startTray()
	begin := time.Now()
	until(t, time.Minute, "the icon is not registered", func() bool { return len(d.registered()) == 1 })
	t.Logf("icon registered after %d ms", time.Since(begin).Milliseconds())

	tr.await("No auth token yet")
	tr.click("Enter the auth token")
	until(t, time.Minute, "the Web UI was not opened", func() bool { return slices.Contains(d.openedPages(), d.api+"/") })

	d.set(up, shop, terminal)
	tr.await("Connected · relay.example:4433")
	tr.await("tcp://relay.example:20001")
	until(t, time.Minute, "no icon is to be seen in the panel", func() bool { return d.colours() > 6 })
	d.shot("tray-connected")

	tr.click("https://my_shop.example → ")
	until(t, time.Minute, "the address was not copied", func() bool {
		out, _ := command(t, 5*time.Second, d.env, "xclip", "-o", "-selection", "clipboard")
		return out == shop.PublicURL
	})
	tr.click("Open in the browser")
	until(t, time.Minute, "the page was not opened", func() bool { return slices.Contains(d.openedPages(), shop.PublicURL) })
	tr.click("Show QR code")
	until(t, time.Minute, "the QR code was not opened", func() bool { return slices.Contains(d.openedPages(), d.api+"/#/tunnels/qr:t1") })

	tr.click("Pause")
	tr.await("Paused")
	tr.click("Resume")
	tr.await("Connected")
	tr.click("Reconnect")
	until(t, time.Minute, "the daemon was not told to reconnect", func() bool {
		return slices.Equal(d.orders(), []string{"pause", "resume", "reconnect"})
	})

	own := filepath.Join(d.dir, "home/.config/autostart/adit-tray.desktop")
	tr.click("Start at login")
	until(t, time.Minute, "nothing starts at login", func() bool { _, err := os.Stat(own); return err == nil })
	until(t, time.Minute, "the menu has no mark at Start at login", func() bool { l, _ := find(tr.menu(), "Start at login"); return l.state == 1 })
	tr.click("Start at login")
	until(t, time.Minute, "it still starts at login", func() bool { _, err := os.Stat(own); return err != nil })

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
	until(t, time.Minute, "the menu does not open by a click", func() bool {
		// The panel may be laying out anew what has just changed, and miss it.
		must(t, patience, d.env, "xdotool", "key", "Escape", "mousemove", "16", "16", "click", "3")
		for limit := time.Now().Add(5 * time.Second); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
			if d.drawn("200x100+0+40") {
				return true
			}
		}
		return false
	})
	d.shot("tray-menu")
	must(t, patience, d.env, "xdotool", "key", "Escape")

	second, err := command(t, patience, d.env, d.exe, "tray")
	if err != nil || !strings.Contains(second, "already running") {
		t.Errorf("a second tray: got %q, error %v", second, err)
	}
	rss, _ := command(t, 5*time.Second, nil, "ps", "-o", "rss=", "-p", fmt.Sprint(tr.cmd.Process.Pid))
	t.Logf("tray resident memory: %s kB", rss)

	// The panel restarts, and the icon comes back.
	syscall.Kill(-panel.Process.Pid, syscall.SIGKILL)
	until(t, time.Minute, "the panel is still there", func() bool { return !d.owned("org.kde.StatusNotifierWatcher") })
	d.start("xfce4-panel", "--disable-wm-check")
	until(t, time.Minute, "the icon did not come back with the panel", func() bool { return len(d.registered()) == 1 })

	tr.quit()
	select {
	case <-tr.ended:
		if tr.err != nil {
			t.Errorf("quit: %v\n%s", tr.err, tr.said)
		}
	case <-time.After(patience):
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
	t.Parallel()
	d := newDesktop(t)
	told := d.listenNotifications()
	tr := d.startTray()
	select {
	case got := <-told:
		if !strings.Contains(got, "AppIndicator") {
			t.Errorf("got notification %q, want what is missing", got)
		}
	case <-time.After(patience):
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
		case <-time.After(patience):
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
	until(t, time.Minute, "the late panel has no tray", func() bool { return d.owned("org.kde.StatusNotifierWatcher") })
	until(t, time.Minute, "the icon does not come with a late panel", func() bool { return len(d.registered()) == 1 })
}

func TestTrayEndsWithTheSession(t *testing.T) {
	t.Parallel()
	d := newDesktop(t)
	tr := d.startTray()
	until(t, time.Minute, "the tray is not on the bus", func() bool { return d.owned(tr.name()) })
	syscall.Kill(-d.busProc.Process.Pid, syscall.SIGKILL)
	select {
	case <-tr.ended:
		if tr.err != nil || strings.Contains(tr.said.String(), "panic") {
			t.Errorf("got error %v\n%s", tr.err, tr.said)
		}
	case <-time.After(patience):
		t.Error("the tray outlives its session bus")
	}
}

func TestTrayWithoutABusSaysSo(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	d := newDesktop(t)
	cmd := exec.Command(d.exe, "tray", "--open")
	cmd.Env = slices.DeleteFunc(slices.Clone(d.env), func(s string) bool {
		return strings.HasPrefix(s, "DBUS_SESSION_BUS_ADDRESS=") || strings.HasPrefix(s, "XDG_RUNTIME_DIR=")
	})
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	until(t, time.Minute, "the Web UI was not opened", func() bool { return slices.Contains(d.openedPages(), d.api+"/") })
}
