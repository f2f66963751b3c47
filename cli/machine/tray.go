package machine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/stdio"
	"adit/internal/buildinfo"
	"adit/internal/lockfile"
	"adit/internal/paths"
	"adit/localapi/client"
	"adit/service"
	"adit/tray"
)

// TrayCommand is adit tray.
func TrayCommand(std *stdio.Streams, find *daemon.Finder, openBrowser func(ctx context.Context, url string) error) *cobra.Command {
	var open, atLogin bool
	cmd := &cobra.Command{
		Use:   "tray",
		Short: "Show adit's state in the system tray",
		Long: `Show adit's state in the system tray, with a menu for common actions. There is
one per user: a second one exits immediately.`,
		Example: `  adit tray
  adit tray --open`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if atLogin && tray.Declined() {
				return nil
			}
			return runTray(cmd.Context(), std, &trayDaemon{find: find, openBrowser: openBrowser}, open)
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "also open the Web UI in a browser, and start the daemon if it is not running")
	cmd.Flags().BoolVar(&atLogin, "autostart", false, "end if this person wants no tray at login")
	if err := cmd.Flags().MarkHidden("autostart"); err != nil {
		panic(err) // the flag is made above
	}
	return cmd
}

func runTray(ctx context.Context, std *stdio.Streams, d *trayDaemon, open bool) error {
	exe, err := executable()
	if err != nil {
		return err
	}
	start := func(ctx context.Context) error { return service.Ask(ctx, consoleProgram(exe)) }
	if open {
		if err := d.show(ctx, start); err != nil {
			fmt.Fprintf(std.Err, "adit: %s\n", daemon.Explain(err))
		}
	}
	folders, err := paths.Person()
	if err != nil {
		return err
	}
	dir := folders.State
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the tray: %w", err)
	}
	lock, err := lockfile.Take(filepath.Join(dir, "tray.lock"))
	if errors.Is(err, lockfile.ErrHeld) {
		std.Say("The tray is already running.")
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // the process ends with it
	command := []string{exe, "tray"}
	if exe != consoleProgram(exe) {
		command = []string{exe}
	}
	err = tray.Run(ctx, tray.Config{
		Daemon: d, WebUI: d.webUI, StartDaemon: start, Command: command,
		Version: buildinfo.Get().Version,
		Log:     slog.New(slog.NewTextHandler(std.Err, nil)),
	})
	if errors.Is(err, tray.ErrReplaced) {
		// The next one takes the lock.
		return errors.Join(lock.Release(), runInstead(command))
	}
	if errors.Is(err, tray.ErrNoDesktop) {
		// This is not an error: a machine without a desktop has no tray.
		std.Say("adit tray: %s", err)
		return nil
	}
	return err
}

// consoleProgram returns the program next to exe that has commands.
func consoleProgram(exe string) string {
	dir, name := filepath.Split(exe)
	if strings.EqualFold(name, "adit-tray.exe") {
		return dir + "adit.exe"
	}
	return exe
}

// trayDaemon adapts the local API to what the tray needs. It looks the daemon up each time, because
// the daemon may have come back at another address.
type trayDaemon struct {
	find        *daemon.Finder
	openBrowser func(ctx context.Context, url string) error
}

func (d *trayDaemon) Look(ctx context.Context) (tray.Status, []tray.Endpoint, error) {
	c, err := d.find.Client(ctx)
	if err != nil {
		return tray.Status{}, nil, err
	}
	s, err := c.Status(ctx)
	if client.IsCode(err, client.ErrorCodeUnauthorized) {
		return tray.Status{State: tray.Locked}, nil, nil
	}
	if err != nil {
		return tray.Status{}, nil, err
	}
	list, err := c.Endpoints(ctx)
	if err != nil {
		return tray.Status{}, nil, err
	}
	endpoints := make([]tray.Endpoint, len(list))
	for i, e := range list {
		state := e.State
		if state == "running" && e.Error != "" {
			state = tray.Down
		}
		endpoints[i] = tray.Endpoint{TunnelID: e.TunnelID, Name: e.Name, PublicURL: e.PublicURL, Local: e.Local, State: state}
	}
	return tray.Status{
		Configured: s.Configured, State: s.State,
		Relay: s.Relay, LastError: s.LastError, Version: s.Version,
	}, endpoints, nil
}

func (d *trayDaemon) Order(ctx context.Context, order string) error {
	c, err := d.find.Client(ctx)
	if err != nil {
		return errors.New(daemon.Explain(err))
	}
	do := map[string]func(context.Context) (client.Status, error){"pause": c.Pause, "resume": c.Resume, "reconnect": c.Reconnect}[order]
	if do == nil {
		return fmt.Errorf("the daemon takes no order %q", order)
	}
	if _, err := do(ctx); err != nil {
		return errors.New(daemon.Explain(err))
	}
	return nil
}

func (d *trayDaemon) Watch(ctx context.Context, changed func()) error {
	c, err := d.find.Client(ctx)
	if err != nil {
		return err
	}
	changed() // what has happened until now is in no event
	for event, err := range c.Events(ctx, "") {
		if err != nil {
			return err
		}
		switch event.Type {
		case client.EventRequest, client.EventCleared, client.EventLog:
		default:
			changed()
		}
	}
	return ctx.Err()
}

// webUI returns the URL of the Web UI, as a link that signs the browser in if needed.
func (d *trayDaemon) webUI(ctx context.Context, place string) (string, error) {
	c, err := d.find.Client(ctx)
	if err != nil {
		return "", errors.New(daemon.Explain(err))
	}
	link, err := c.LoginLink(ctx)
	if client.IsCode(err, client.ErrorCodeUnauthorized) {
		return c.BaseURL(), nil // where the person is asked for the token
	}
	if err != nil {
		return "", errors.New(daemon.Explain(err))
	}
	if link.ExpiresAt != nil || place == "" {
		return link.URL, nil
	}
	return c.BaseURL() + place, nil
}

// show opens the Web UI, starting the daemon first if none is running.
func (d *trayDaemon) show(ctx context.Context, start func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	address, err := d.webUI(ctx, "")
	if err != nil {
		if err := start(ctx); err != nil {
			return err
		}
		if address, err = d.awaitWebUI(ctx); err != nil {
			return err
		}
	}
	if d.openBrowser == nil {
		return fmt.Errorf("open %s in a browser", address)
	}
	return d.openBrowser(ctx, address)
}

// startPatience is how long a daemon that is being started may take to answer; the user may be
// asked for a password in the meantime.
const startPatience = 90 * time.Second

func (d *trayDaemon) awaitWebUI(ctx context.Context) (string, error) {
	for {
		address, err := d.webUI(ctx, "")
		if err == nil {
			return address, nil
		}
		select {
		case <-ctx.Done():
			return "", err
		case <-time.After(200 * time.Millisecond):
		}
	}
}
