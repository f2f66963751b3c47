//go:build !windows

package tray

import "os"

// openShared opens a file without preventing others from replacing it in the meantime.
func openShared(file string) (*os.File, error) { return os.Open(file) }

// Declined reports whether the person does not want the tray at login although the installer starts
// one for everybody. Here the desktop knows, and does not start it.
func Declined() bool { return false }

// comeBack makes the system start command again if it ends this program for an update. Systems
// handled here do not do that.
func comeBack([]string) error { return nil }
