// Package browser opens a page in the browser of the user at this machine.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// patience is how long a program may take to report that it cannot open the page. Some run for as
// long as the browser does.
const patience = 2 * time.Second

// Open opens a page in the user's browser. A sign-in link is a secret only until it is used, and it
// is used at once. If nothing opens the page, as on a machine without a desktop, the error says
// what was tried.
func Open(ctx context.Context, url string) error { return openWith(ctx, url, exec.LookPath) }

func openWith(ctx context.Context, url string, find func(program string) (path string, err error)) error {
	var failed error
	for _, command := range commands() {
		path, err := find(command[0])
		if err != nil {
			continue
		}
		err = start(ctx, exec.Command(path, append(command[1:len(command):len(command)], url)...))
		if err == nil || ctx.Err() != nil {
			return err
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", path, err))
	}
	if failed == nil {
		return errors.New("no program was found that can open a browser")
	}
	return failed
}

// start lets cmd open a page, and returns once it has, or may have.
func start(ctx context.Context, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // which may be when the browser is closed
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
