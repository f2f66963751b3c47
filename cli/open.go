package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/spf13/cobra"

	"adit/cli/command"
)

func openCommand(env *Env) *cobra.Command {
	var printOnly bool
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Open the Web UI in a browser",
		Long: `Open the Web UI in a browser. Where the local API asks for a Bearer token, the
link signs that browser in; it is good once, and for one minute.`,
		Example: `  adit open
  adit open --print`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			link, err := c.LoginLink(cmd.Context())
			if err != nil {
				return err
			}
			if printOnly || env.std.JSON || env.OpenBrowser == nil {
				return env.std.Print(link, func(w io.Writer) { fmt.Fprintln(w, link.URL) })
			}
			if err := env.OpenBrowser(cmd.Context(), link.URL); err != nil {
				env.std.Say("Open this page in a browser of this machine: %s", link.URL)
				return nil
			}
			env.std.Say("Opened %s.", c.BaseURL())
			return nil
		},
	}
	cmd.Flags().BoolVar(&printOnly, "print", false, "print the link instead")
	return cmd
}

// openBrowser shows a page in the person's browser. The link is a secret only
// until it is used, and it is used at once.
func openBrowser(ctx context.Context, url string) error {
	for _, command := range browserCommands {
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
