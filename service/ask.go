package service

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"adit/internal/paths"
)

// Ask starts the daemon for a person at a desktop. If there is a service, it starts that, for which
// the system asks the person's consent. Otherwise it runs exe as the person themself; that process
// outlives the caller and keeps its log in a file.
func Ask(ctx context.Context, exe string) error {
	m, err := current()
	if err == nil {
		if file, _ := m.declared(); file != "" {
			if err := askStart(ctx, exe); err != nil {
				return fmt.Errorf("start the service: %w", err)
			}
			return nil
		}
	}
	cmd := exec.Command(exe, "start")
	cmd.Env = os.Environ()
	if folders, err := paths.Person(); err == nil && os.Getenv(EnvLogFile) == "" {
		// The process has no terminal in which to say why it ended.
		cmd.Env = append(cmd.Env, EnvLogFile+"="+filepath.Join(folders.State, "log", "adit.log"))
	}
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	return cmd.Process.Release()
}
