package agent

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/stdio"
	"adit/internal/visible"
	"adit/localapi/client"
)

// DoctorCommand is adit doctor.
func DoctorCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check everything a working tunnel needs, and suggest repairs",
		Long: `Check everything a working tunnel needs, and suggest what to do.
The exit code is 1 if something failed.`,
		Example: `  adit doctor
  adit doctor --json > report.json`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			checks, err := c.Diagnose(cmd.Context())
			if err != nil {
				return err
			}
			err = std.PrintPage(stdio.ListOf(checks), func(w io.Writer) {
				for _, check := range checks {
					fmt.Fprintf(w, "%s\t%s: %s\n", check.Status, visible.Text(check.Tried), visible.Text(check.Result))
					if check.Advice != "" {
						fmt.Fprintf(w, "\t  -> %s\n", visible.Text(check.Advice))
					}
				}
			})
			if err == nil && slices.ContainsFunc(checks, func(c client.Check) bool { return c.Status == "failed" }) {
				return command.ErrQuiet
			}
			return err
		},
	}
}
