package machine

import (
	"fmt"
	"os"
	"path/filepath"
)

// executable is the program's file, without links that may be moved away.
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
