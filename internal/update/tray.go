package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"adit/internal/windowed"
)

// trayName is the program without a console that lies beside adit.exe.
const trayName = "adit-tray.exe"

// tray returns the tray's program beside exe; empty if there is none.
func tray(exe string) string {
	if !strings.EqualFold(filepath.Base(exe), "adit.exe") {
		return ""
	}
	file := filepath.Join(filepath.Dir(exe), trayName)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// windowedFor returns the program of the tray that belongs to program.
func windowedFor(program []byte) ([]byte, error) {
	data, err := windowed.Program(program)
	if err != nil {
		return nil, fmt.Errorf("make the tray's program of the new one: %w", err)
	}
	return data, nil
}

// SetTrayAside renames the tray's program next to exe, so that running trays continue under the new
// name, and leaves a copy in its place that nobody runs and that an installer can replace. It does
// nothing if there is no such program.
func SetTrayAside(exe string) error {
	file := tray(exe)
	if file == "" {
		return nil
	}
	old := file + ".old"
	if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what an earlier update has left: %w", err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.Rename(file, old); err != nil {
		return fmt.Errorf("set the tray's program aside: %w", err)
	}
	err = os.WriteFile(file, data, 0o755)
	if err == nil {
		// A tray takes it for its own program by this.
		err = os.Chtimes(file, time.Time{}, info.ModTime())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("leave a copy in the place of the tray's program: %w", err), os.Remove(file), os.Rename(old, file))
	}
	return nil
}

// SweepTray removes what SetTrayAside has set aside, once no tray runs it any more. It waits for
// that until ctx ends.
func SweepTray(ctx context.Context, exe string) error {
	old := filepath.Join(filepath.Dir(exe), trayName+".old")
	for {
		err := os.Remove(old)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove the tray's old program: %w", err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}
