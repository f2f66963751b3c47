//go:build !windows && !darwin

package tray

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNoSessionBusIsSaid(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	if err := Run(t.Context(), Config{Log: slog.New(slog.DiscardHandler)}); !errors.Is(err, ErrNoDesktop) {
		t.Errorf("got error %v, want ErrNoDesktop", err)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	if err := Run(t.Context(), Config{}); !errors.Is(err, ErrNoDesktop) {
		t.Errorf("with a dead address: got error %v, want ErrNoDesktop", err)
	}
}

func TestAutostartIsTurnedOnAndOff(t *testing.T) {
	command := []string{"/opt/my tools/adit", "tray"}
	for _, packaged := range []bool{false, true} {
		a := autostart{home: t.TempDir(), system: t.TempDir()}
		own, system, err := a.files()
		if err != nil {
			t.Fatal(err)
		}
		if packaged {
			if err := os.MkdirAll(filepath.Dir(system), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(system, []byte("[Desktop Entry]\nExec=adit tray\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if a.on() != packaged {
			t.Errorf("packaged %t: at first got on %t", packaged, a.on())
		}
		for _, on := range []bool{true, false, false, true, true} {
			if err := a.set(command, on); err != nil {
				t.Fatal(err)
			}
			if a.on() != on {
				text, _ := os.ReadFile(own)
				t.Errorf("packaged %t: after setting %t got %t; the file says %q", packaged, on, a.on(), text)
			}
		}
		if text, err := os.ReadFile(own); !packaged && (err != nil || !strings.Contains(string(text), `Exec="/opt/my tools/adit" tray`)) {
			t.Errorf("got file %q, error %v", text, err)
		}
	}
}

func TestAutostartThatWasTurnedOffElsewhere(t *testing.T) {
	const entry = "[Desktop Entry]\nExec=adit tray\n"
	off := map[string]string{
		"by GNOME":      entry + "X-GNOME-Autostart-enabled=false\n",
		"by the system": entry + "Hidden=true\n",
	}
	for name, text := range off {
		for _, everybody := range []bool{false, true} {
			a := autostart{home: t.TempDir(), system: t.TempDir()}
			own, system, err := a.files()
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{system: entry, own: text}
			if everybody {
				files = map[string]string{system: text}
			}
			for file, text := range files {
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if a.on() {
				t.Errorf("off %s, for everybody %t: got on", name, everybody)
			}
			for _, on := range []bool{true, false, true} {
				if err := a.set([]string{"adit", "tray"}, on); err != nil {
					t.Fatal(err)
				}
				if a.on() != on {
					t.Errorf("off %s, for everybody %t: after setting %t got %t", name, everybody, on, a.on())
				}
			}
		}
	}
	// A key of another group says nothing of the start.
	if !starts(entry + "X-GNOME-Autostart-enabled=true\n[Desktop Action x]\nHidden=true\n") {
		t.Error("a key of an action turned the entry off")
	}
}

// Where there is no browser, xdg-open is there all the same and says so by its exit
// code alone: 3, or 4.
func TestABrowserThatDoesNotOpenIsTold(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	for does, fails := range map[string]bool{"exit 3": true, "exit 0": false, "exec /bin/sleep 5": false} {
		if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\n"+does+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := new(freedesktop).open("https://web.example")
		if (err != nil) != fails || fails && !strings.Contains(err.Error(), "https://web.example") {
			t.Errorf("%s: got error %v, want one that names the address: %t", does, err, fails)
		}
	}
}

func TestLanguagesFollowTheEnvironment(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want []string
	}{
		{map[string]string{}, nil},
		{map[string]string{"LANG": "C.UTF-8"}, []string{"", "C.UTF-8"}},
		{map[string]string{"LANG": "zh_CN.UTF-8"}, []string{"", "zh_CN.UTF-8"}},
		{map[string]string{"LANG": "en_US.UTF-8", "LANGUAGE": "zh:en"}, []string{"zh", "en", "en_US.UTF-8"}},
		{map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "C", "LANGUAGE": "zh"}, []string{"C"}},
	} {
		for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG", "LANGUAGE"} {
			t.Setenv(name, tt.env[name])
		}
		if got := languages(); !slices.Equal(got, tt.want) {
			t.Errorf("%v: got %q, want %q", tt.env, got, tt.want)
		}
	}
}
