package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/internal/buildinfo"
)

func versionCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show version, commit, Go version and platform",
		Example: `  adit version
  adit version --json | jq -r .version`,
		Args: command.Args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return printVersion(env) },
	}
}

func printVersion(env *Env) error {
	i := buildinfo.Get()
	return env.std.Print(i, func(w io.Writer) {
		commit := i.Commit
		if commit == "" {
			commit = "unknown"
		}
		if i.Modified {
			commit += ", with changes"
		}
		fmt.Fprintf(w, "adit\t%s\ncommit\t%s\nGo\t%s\nplatform\t%s\n", i.Version, commit, i.Go, i.Platform)
	})
}
