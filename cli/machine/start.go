package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/terminal"
	"adit/internal/discovery"
	"adit/internal/paths"
	releases "adit/internal/update"
	"adit/service"
)

// StartCommand runs the daemon with run, whose httpListen is where the local API should listen; if
// empty, at the configured address.
func StartCommand(run func(ctx context.Context, httpListen string) error) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run the daemon in the foreground",
		Long: `Run the daemon in the foreground, until Ctrl-C.

It maintains the session with the relay, and serves the Web UI and the local API
at http://127.0.0.1:37271. To have it start with the machine, install it as a
service instead: "adit service install".`,
		Example: `  adit start
  adit start --http_listen 127.0.0.1:8181`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !listenable(listen) {
				return command.Usagef("--http_listen must be an address and a port, such as 127.0.0.1:37271, not %q", listen)
			}
			if run == nil {
				return errors.New("this build has no daemon; use a released one")
			}
			return run(cmd.Context(), listen)
		},
	}
	cmd.Flags().StringVar(&listen, "http_listen", "", "address of the Web UI and the local API (default 127.0.0.1:37271)")
	return cmd
}

// RunDaemon runs the daemon in this process, as a service or in a terminal.
func RunDaemon(ctx context.Context, httpListen string) error {
	folders, err := paths.Person()
	if err != nil {
		return err
	}
	if exe, err := executable(); err == nil && !releases.Managed(exe) {
		releases.Sweep(exe) // where it may not write, the next update does it
	}
	d := service.Daemon{HTTPListen: httpListen, ConfigDir: folders.Config, StateDir: folders.State}
	if terminal.Is(os.Stdout) {
		d.Ready = func(addr net.Addr) { fmt.Println(started(addr)) }
	}
	return service.Host(ctx, d)
}

// started tells a person at a terminal where to go on; the log beside it is for machines.
func started(addr net.Addr) string {
	return fmt.Sprintf("The daemon runs until Ctrl-C. Its Web UI is at http://%s; go on there, or in another terminal.", discovery.ConnectAddr(addr.String()))
}

// listenable reports whether addr has the form HOST:PORT, or is empty.
func listenable(addr string) bool {
	if addr == "" {
		return true
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
