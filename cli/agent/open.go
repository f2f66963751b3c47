package agent

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/stdio"
)

// OpenCommand is adit open.
func OpenCommand(std *stdio.Streams, find *daemon.Finder, openBrowser func(ctx context.Context, url string) error) *cobra.Command {
	var printOnly bool
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Open the Web UI in a browser",
		Long: `Open the Web UI in a browser. If the local API requires a Bearer token, the link
signs the browser in; it works once, within a minute.`,
		Example: `  adit open
  adit open --print`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			link, err := c.LoginLink(cmd.Context())
			if err != nil {
				return err
			}
			if printOnly || std.JSON || openBrowser == nil {
				return std.Print(link, func(w io.Writer) { fmt.Fprintln(w, link.URL) })
			}
			if err := openBrowser(cmd.Context(), link.URL); err != nil {
				std.Say("Open this page in a browser on this machine: %s", link.URL)
				return nil
			}
			std.Say("Opened %s.", c.BaseURL())
			return nil
		},
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the link instead of opening it")
	return cmd
}
