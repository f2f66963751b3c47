//go:build !windows

package tray

import "os"

// openShared opens a file without keeping others from replacing it meanwhile.
func openShared(file string) (*os.File, error) { return os.Open(file) }

// Declined reports whether the person wants no tray at login although the
// installer starts one for everybody. Here the desktop knows, and does not
// start it.
func Declined() bool { return false }

// comeBack has the system start command again where it ends this program for an
// update. Here none does.
func comeBack([]string) error { return nil }
