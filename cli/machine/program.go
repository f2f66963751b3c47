package machine

import (
	"fmt"
	"os"
	"path/filepath"
)

// executable returns the program's file, with links resolved, because they may change.
func executable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program's own file: %w", err)
	}
	if resolved, err := filepath.EvalSymlinks(exe); err == nil {
		return resolved, nil
	}
	return exe, nil // some of Windows' file systems cannot say
}
