package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"adit/service"
)

func serviceCommand(env *Env) *cobra.Command {
	verb := func(use, short, done string, do func(ctx context.Context) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: args(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error {
				if err := do(cmd.Context()); err != nil {
					return err
				}
				return env.serviceDone(cmd.Context(), done)
			},
		}
	}
	mend := verb("mend", "Set the rights and the recovery of a service that an installer has declared", "The service is mended.",
		func(context.Context) error { return service.Harden() })
	mend.Hidden = true
	return group("service", "The daemon as a service of the operating system",
		`The daemon as a service of the operating system: started with the machine,
brought back when it ends, and running with as few rights as the system allows.

"status" is for everybody; the others need an administrator's rights.`,
		verb("install", "Install the service, to be started with the machine", "The service is installed. adit service start starts it now.", func(ctx context.Context) error {
			exe, err := executable()
			if err != nil {
				return err
			}
			return service.Install(ctx, exe)
		}),
		verb("uninstall", "Stop and remove the service; configuration and token stay", "The service is removed.", service.Uninstall),
		verb("start", "Start the service", "The service runs.", service.Start),
		verb("stop", "Stop the service", "The service is stopped.", service.Stop),
		verb("restart", "Stop and start the service", "The service runs.", service.Restart),
		serviceStatusCommand(env),
		mend,
	)
}

// serviceDone says what was done; with --json, how things are now.
func (e *Env) serviceDone(ctx context.Context, done string) error {
	if !e.json {
		e.say("%s", done)
		return nil
	}
	status, err := service.Query(ctx)
	if err != nil {
		return err
	}
	return e.print(status, func(io.Writer) {})
}

func serviceStatusCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show whether the service is installed, runs and is well", Args: args(0, 0, ""),
		Long: `Show whether the service is installed, runs and is well. Anybody may ask.
The exit code is 0 if it runs and answers.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := service.Query(cmd.Context())
			if err != nil {
				return err
			}
			err = env.print(status, func(w io.Writer) {
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
				return errQuiet
			}
			return err
		},
	}
}

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
