//go:build !windows && !darwin

package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatOpensNothingIsNotTakenForABrowser: xdg-open is there on many a machine
// without a desktop, and says so by its exit code alone.
func TestWhatOpensNothingIsNotTakenForABrowser(t *testing.T) {
	t.Setenv("DISPLAY", ":1")
	for name, c := range map[string]struct {
		programs map[string]string // what each does
		opened   string            // by which; empty: by none
		err      string
	}{
		"none is there":  {nil, "", "no program was found"},
		"it opens":       {map[string]string{"xdg-open": "exit 0", "x-www-browser": "exit 0"}, "xdg-open", ""},
		"it has none":    {map[string]string{"xdg-open": "exit 3"}, "xdg-open", "exit status 3"},
		"another has":    {map[string]string{"xdg-open": "exit 3", "x-www-browser": "exit 0"}, "x-www-browser", ""},
		"it is the page": {map[string]string{"xdg-open": "exec sleep 5", "x-www-browser": "exit 0"}, "xdg-open", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			opened := filepath.Join(bin, "opened")
			for program, does := range c.programs {
				script := "#!/bin/sh\necho " + program + " \"$@\" >" + opened + "\n" + does + "\n"
				if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			err := openWith(t.Context(), "http://127.0.0.1:1/", func(name string) (string, error) {
				path := filepath.Join(bin, name)
				_, err := os.Stat(path)
				return path, err
			})
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got error %v, want %q", err, c.err)
			}
			text, _ := os.ReadFile(opened)
			want := ""
			if c.opened != "" {
				want = c.opened + " http://127.0.0.1:1/\n"
			}
			if string(text) != want {
				t.Errorf("opened %q, want %q", text, want)
			}
		})
	}
}

// TestWithoutADisplayNothingThatNeedsOneIsTried: gio starts a browser and says that all is
// well, before the browser finds no display.
func TestWithoutADisplayNothingThatNeedsOneIsTried(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	err := openWith(t.Context(), "http://127.0.0.1:1/", func(name string) (string, error) {
		if name == "gio" {
			return "/bin/true", nil
		}
		return "/bin/false", nil
	})
	if err == nil {
		t.Error("it says that the page is open")
	}
}
