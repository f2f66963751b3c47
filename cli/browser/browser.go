// Package browser shows a page in the browser of the person at this machine.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
)

// Open shows a page in the person's browser. The link is a secret only
// until it is used, and it is used at once.
func Open(ctx context.Context, url string) error {
	for _, command := range commands {
		path, err := exec.LookPath(command[0])
		if err != nil {
			continue
		}
		cmd := exec.CommandContext(ctx, path, append(command[1:], url)...)
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start %s: %w", path, err)
		}
		return cmd.Process.Release()
	}
	return errors.New("there is no program to open a browser with")
}
