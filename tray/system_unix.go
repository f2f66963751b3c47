//go:build !windows && !darwin

package tray

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

const iconKind = "png"

const (
	watcherName = "org.kde.StatusNotifierWatcher"
	notifyName  = "org.freedesktop.Notifications"
	portalName  = "org.freedesktop.portal.Desktop"
	// hostPatience is how long a panel that starts with the session may take.
	hostPatience = 8 * time.Second
	// openPatience is how long xdg-open may take to report that it cannot open something.
	openPatience = 2 * time.Second
)

// system connects to the person's desktop. Its error matches ErrNoDesktop if there is no session
// bus.
func system(clicks chan<- Action, log *slog.Logger) (desk, screen, error) {
	// Without an address, the bus library would start its own bus, which nobody else uses and which
	// outlives this program.
	if !hasSessionBus() {
		return nil, nil, ErrNoDesktop
	}
	conn, err := dbus.ConnectSessionBus()
	if err != nil {
		return nil, nil, fmt.Errorf("%w (%w)", ErrNoDesktop, err)
	}
	f := &freedesktop{conn: conn, log: log}
	return f, &watched{screen: newScreen(clicks), desk: f}, nil
}

func hasSessionBus() bool {
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	info, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil && info.Mode()&fs.ModeSocket != 0
}

// watched ends the screen together with the session bus, whose end the systray library does not
// notice, and reports if there is no panel to show the icon.
type watched struct {
	screen
	desk *freedesktop
}

func (w *watched) loop(ctx context.Context, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-ctx.Done():
		case <-w.desk.conn.Context().Done():
			cancel()
		}
	})
	wg.Go(func() { w.desk.missHost(ctx) })
	err := w.screen.loop(ctx, ready)
	ended := w.desk.conn.Context().Err() != nil
	cancel()
	wg.Wait()
	w.desk.conn.Close()
	if err == nil && ended {
		return errSessionEnded
	}
	return err
}

// freedesktop is a desktop that follows freedesktop.org's specifications.
type freedesktop struct {
	conn *dbus.Conn
	log  *slog.Logger

	mu     sync.Mutex
	lastID uint32 // of the notification to be replaced by the next; guarded
}

// missHost reports, once, that the desktop has no place for the icon, if none appears for a while.
// The library shows the icon if a panel appears later.
func (f *freedesktop) missHost(ctx context.Context) {
	deadline := time.After(hostPatience)
	for {
		var has bool
		if err := f.conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, watcherName).Store(&has); err != nil || has {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-deadline:
			w := wordsFor(languages())
			f.log.Warn("no tray host", "title", w.noHost, "body", w.noHostBody)
			if err := f.notify(Notice{Title: w.noHost, Body: w.noHostBody}); err != nil {
				f.log.Debug("the desktop shows no notification", "err", err)
			}
			return
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (f *freedesktop) notify(n Notice) error {
	f.mu.Lock()
	replaces := f.lastID
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var id uint32
	// The body may contain an address with characters that some servers interpret as markup.
	body := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(n.Body)
	hints := map[string]dbus.Variant{"desktop-entry": dbus.MakeVariant("adit"), "urgency": dbus.MakeVariant(byte(1))}
	err := f.conn.Object(notifyName, "/org/freedesktop/Notifications").CallWithContext(ctx,
		notifyName+".Notify", 0, "adit", replaces, "adit", n.Title, body, []string{}, hints, int32(-1)).Store(&id)
	if err != nil {
		return fmt.Errorf("show a notification: %w", err)
	}
	f.mu.Lock()
	f.lastID = id
	f.mu.Unlock()
	return nil
}

func (f *freedesktop) open(address string) error {
	if _, err := exec.LookPath("xdg-open"); err != nil {
		return fmt.Errorf("no browser can be opened here (xdg-open is missing): open %s yourself", address)
	}
	cmd := exec.Command("xdg-open", address)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("open %s: %w", address, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("no browser can be opened here (xdg-open: %w): open %s yourself", err, address)
		}
	case <-time.After(openPatience): // some versions stay as long as the browser does
	}
	return nil
}

func (f *freedesktop) copyText(text string) error {
	tools := [][]string{{"xclip", "-selection", "clipboard"}, {"xsel", "--clipboard", "--input"}}
	if os.Getenv("WAYLAND_DISPLAY") != "" {
		tools = append([][]string{{"wl-copy"}}, tools...)
	}
	var failed []error
	for _, tool := range tools {
		if _, err := exec.LookPath(tool[0]); err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		cmd := exec.CommandContext(ctx, tool[0], tool[1:]...)
		cmd.Stdin = bytes.NewBufferString(text)
		err := cmd.Run()
		cancel()
		if err == nil {
			return nil
		}
		failed = append(failed, fmt.Errorf("%s: %w", tool[0], err))
	}
	if len(failed) == 0 {
		return fmt.Errorf("nothing here can copy (install xclip, or wl-clipboard under Wayland): the address is %s", text)
	}
	return fmt.Errorf("copy: %w", errors.Join(failed...))
}

// panelLook follows the person's preference. If the desktop does not say, the panel may be of any
// colour.
func (f *freedesktop) panelLook() Look {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var value dbus.Variant
	err := f.conn.Object(portalName, "/org/freedesktop/portal/desktop").CallWithContext(ctx,
		"org.freedesktop.portal.Settings.Read", dbus.FlagNoAutoStart, "org.freedesktop.appearance", "color-scheme").Store(&value)
	if err != nil {
		return LookAny
	}
	for inner, ok := value.Value().(dbus.Variant); ok; inner, ok = value.Value().(dbus.Variant) {
		value = inner
	}
	scheme, ok := value.Value().(uint32)
	switch {
	case ok && scheme == 1:
		return LookDark
	case ok && scheme == 2:
		return LookLight
	default:
		return LookAny
	}
}

func (f *freedesktop) startsAtLogin() bool { return autostart{}.on() }

func (f *freedesktop) setStartAtLogin(command []string, on bool) error {
	return autostart{}.set(command, on)
}

// languages returns the person's languages, in order of preference (gettext's order).
func languages() []string {
	var all []string
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if v := os.Getenv(name); v != "" {
			if v != "C" && v != "POSIX" {
				all = strings.Split(os.Getenv("LANGUAGE"), ":")
			}
			return append(all, v)
		}
	}
	return nil
}

// escapeLabel prevents an underscore from being interpreted as a mnemonic marker.
func escapeLabel(s string) string { return strings.ReplaceAll(s, "_", "__") }
