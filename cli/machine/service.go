// Package machine contains the commands that concern the program on this machine: the daemon in the
// foreground and as a service, the tray, and updates. Commands that make requests to the daemon are
// elsewhere.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/stdio"
	releases "adit/internal/update"
	"adit/service"
)

// ServiceCommand is adit service.
func ServiceCommand(std *stdio.Streams) *cobra.Command {
	verb := func(use, short string, told func(before string) string, do func(ctx context.Context) (before string, err error)) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Example: "  adit service " + use, Args: command.Args(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error {
				before, err := do(cmd.Context())
				if err != nil {
					return err
				}
				return serviceDone(cmd.Context(), std, told(before))
			},
		}
	}
	mend := verb("mend", "Set the rights and the recovery of a service that an installer has declared",
		func(string) string { return "The service is mended." },
		func(context.Context) (string, error) { return "", service.Harden() })
	mend.Hidden = true
	// For Windows Installer, which can do neither by itself.
	aside := verb("tray-aside", "Have the trays that run go on while their program is replaced",
		func(string) string { return "The tray's program can be replaced." },
		func(ctx context.Context) (string, error) { return "", trayAside(ctx) })
	aside.Hidden = true
	sweep := verb("tray-sweep", "Remove the trays' old program once none runs it",
		func(string) string { return "The tray's old program is gone." },
		func(ctx context.Context) (string, error) { return "", traySweep(ctx) })
	sweep.Hidden = true
	return command.Group("service", "Manage the daemon as a service of the operating system",
		`Run the daemon as a service of the operating system: it starts with the machine,
is restarted when it ends, and has as few privileges as the system allows.

Anyone may use "status"; the other commands need administrator rights. It is not
an error to start a service that is running, or to uninstall one that is not
installed.`,
		verb("install", "Install the service, which starts with the machine", installedText, func(ctx context.Context) (string, error) {
			exe, err := executable()
			if err != nil {
				return "", err
			}
			return service.Install(ctx, exe)
		}),
		verb("uninstall", "Stop and remove the service; configuration and token stay", uninstalledText, service.Uninstall),
		verb("start", "Start the service", startedText, service.Start),
		verb("stop", "Stop the service", stoppedText, service.Stop),
		verb("restart", "Stop and start the service", func(string) string { return "The service runs." }, service.Restart),
		serviceStatusCommand(std),
		mend, aside, sweep,
	)
}

func trayAside(ctx context.Context) error {
	exe, err := executable()
	if err != nil {
		return err
	}
	if err := releases.SetTrayAside(exe); err != nil {
		// Ended trays do not lock their file; that is better than having to restart the machine.
		return errors.Join(err, endTrays(ctx))
	}
	return nil
}

// sweepPatience is how long trays may take to notice the new program and start it.
const sweepPatience = 15 * time.Second

func traySweep(ctx context.Context) error {
	exe, err := executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sweepPatience)
	defer cancel()
	return releases.SweepTray(ctx, exe)
}

// What was done, by the state in which the service was before.

func installedText(before string) string {
	switch before {
	case service.NotInstalled:
		return "The service is installed. adit service start starts it now."
	case service.Running, service.Starting, service.Failed:
		return "The service was installed already. It is installed anew for this program, and started again."
	}
	return "The service was installed already. It is installed anew for this program; adit service start starts it now."
}

func uninstalledText(before string) string {
	if before == service.NotInstalled {
		return "No service was installed: there is nothing to remove."
	}
	if before == service.Replaced {
		return "The service is removed. That of the package, which it has hidden, is in its place."
	}
	return "The service is removed. Configuration and token are still there."
}

func startedText(before string) string {
	if before == service.Running {
		return "The service runs already."
	}
	return "The service runs."
}

func stoppedText(before string) string {
	if before == service.Stopped {
		return "The service was stopped already."
	}
	return "The service is stopped."
}

// serviceDone reports what was done or, with --json, the current state.
func serviceDone(ctx context.Context, std *stdio.Streams, done string) error {
	if !std.JSON {
		return std.PrintText(done + "\n")
	}
	status, err := service.Query(ctx)
	if err != nil {
		return err
	}
	return std.Print(status, func(io.Writer) {})
}

func serviceStatusCommand(std *stdio.Streams) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show whether the service is installed, running and healthy", Args: command.Args(0, 0, ""),
		Long: `Show whether the service is installed, running and healthy. Anyone may use it.
The exit code is 0 if the service is running and answers.`,
		Example: `  adit service status
  adit service status --json | jq -r .state`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := service.Query(cmd.Context())
			if err != nil {
				return err
			}
			err = std.PrintPage(status, func(w io.Writer) {
				fmt.Fprintf(w, "service\t%s (%s)\n", status.State, status.Manager)
				if status.File != "" {
					owner := ""
					if status.Owner != "" {
						owner = ", by a " + status.Owner
					}
					fmt.Fprintf(w, "declared\t%s%s\n", status.File, owner)
				}
				switch {
				case status.Healthy:
					fmt.Fprintf(w, "daemon\tanswers at http://%s (version %s)\n", status.Address, status.Version)
				case status.State != service.NotInstalled:
					fmt.Fprintf(w, "daemon\tdoes not answer\n")
				}
				switch status.State {
				case service.NotInstalled:
					fmt.Fprintf(w, "next\tadit service install, as an administrator\n")
				case service.Stopped:
					fmt.Fprintf(w, "next\tadit service start, as an administrator\n")
				case service.Failed:
					fmt.Fprintf(w, "next\t%s says why\n", status.Log)
				}
			})
			if err == nil && (status.State != service.Running || !status.Healthy) {
				return command.ErrQuiet
			}
			return err
		},
	}
}
