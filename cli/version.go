package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/stdio"
	"adit/internal/buildinfo"
)

func versionCommand(std *stdio.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show version, commit, Go version and platform",
		Example: `  adit version
  adit version --json | jq -r .version`,
		Args: command.Args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return printVersion(std) },
	}
}

func printVersion(std *stdio.Streams) error {
	i := buildinfo.Get()
	return std.Print(i, func(w io.Writer) {
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
