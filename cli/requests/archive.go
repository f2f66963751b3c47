package requests

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/stdio"
	"adit/localapi/client"
)

func exportCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	var reveal bool
	cmd := &cobra.Command{
		Use:     "export [FILE]",
		Short:   "Write the requests as an HTTP Archive (HAR 1.2)",
		Example: "  adit requests export traffic.har",
		Args:    command.Args(0, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) == 0 || args[0] == "-" {
				return c.ExportHAR(cmd.Context(), std.Out, client.RequestFilter{}, reveal)
			}
			file := &lateFile{path: args[0]}
			err = c.ExportHAR(cmd.Context(), file, client.RequestFilter{}, reveal)
			if err = errors.Join(err, file.Close()); err != nil {
				return err
			}
			if std.JSON {
				return std.Print(map[string]any{"file": args[0], "bytes": file.size}, nil)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&reveal, "reveal", false, "include headers that hold secrets")
	return cmd
}

// lateFile is a file that is created, or emptied, only by the first write: a refusal leaves the
// existing file alone. Recorded traffic is often secret, so a new file is readable by its owner
// only.
type lateFile struct {
	path string
	file *os.File
	size int64
}

func (f *lateFile) Write(b []byte) (int, error) {
	if f.file == nil {
		file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return 0, err
		}
		f.file = file
	}
	n, err := f.file.Write(b)
	f.size += int64(n)
	return n, err
}

func (f *lateFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// maxArchive is the size of the largest archive that the local API accepts.
const maxArchive = 1 << 20

func importCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return &cobra.Command{
		Use:     "import FILE",
		Short:   "Import the entries of an HTTP Archive, to inspect and replay them",
		Example: "  adit requests import traffic.har",
		Args:    command.Args(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, named := std.In, "the standard input"
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return fmt.Errorf("read the archive: %w", err)
				}
				defer file.Close()
				in, named = file, args[0]
			}
			archive, err := io.ReadAll(io.LimitReader(in, maxArchive+1))
			if err != nil {
				return fmt.Errorf("read the archive: %w", err)
			}
			if len(archive) > maxArchive {
				return fmt.Errorf("%s is larger than 1 MiB; remove some of its entries", named)
			}
			if !json.Valid(archive) {
				return fmt.Errorf("%s is not an HTTP Archive: it is not JSON", named)
			}
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			added, err := c.ImportHAR(cmd.Context(), archive)
			if err != nil {
				return err
			}
			return std.Print(client.HARImport{Added: added}, func(w io.Writer) { fmt.Fprintf(w, "Added %d.\n", added) })
		},
	}
}
