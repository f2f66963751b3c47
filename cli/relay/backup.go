package relay

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/relay/admin"
	"adit/cli/stdio"
	"adit/internal/atomicfile"
	"adit/tunnel/relay/backup"
)

func backupCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	a := newRunning(std, getenv)
	return a.Flags(&cobra.Command{
		Use:   "backup FILE",
		Short: "Back up a running relay to a file",
		Long: `Write a running relay's clients, claims, policies, authorities and admin token
to a file that only its owner may read, or to standard output with -. A file
that exists is replaced. Protect the backup like a private key: whoever has it
can impersonate your relay. Access events are not included.`,
		Example: "  adit relay backup relay.backup\n  adit relay backup - | gpg --encrypt --recipient ops > relay.backup.gpg",
		Args:    command.Args(1, 1, "the file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var document json.RawMessage
			if err := a.Call(cmd.Context(), http.MethodGet, "/api/v1/backup", nil, &document); err != nil {
				return err
			}
			document = append(document, '\n')
			if args[0] == "-" {
				_, err := std.Out.Write(document)
				return err
			}
			file, err := writeBackup(args[0], document)
			if err != nil || !file {
				return err
			}
			if std.JSON {
				return std.Print(map[string]any{"file": args[0], "bytes": len(document)}, nil)
			}
			std.Say("The backup is in %s. It holds private keys.", args[0])
			return nil
		},
	})
}

// writeBackup replaces the file at path, or the file that a link at path leads to. Something that
// is not a regular file, such as a pipe or /dev/stdout, is written to but not replaced; the result
// reports whether it is a regular file.
func writeBackup(path string, text []byte) (file bool, err error) {
	stat, err := os.Stat(path)
	switch {
	case err == nil && stat.IsDir():
		return false, fmt.Errorf("write the backup: %s is a folder; give the name of a file in it", path)
	case err == nil && !stat.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return false, fmt.Errorf("write the backup: %w", err)
		}
		_, err = f.Write(text)
		return false, errors.Join(err, f.Close())
	case err == nil:
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return false, fmt.Errorf("write the backup: %w", err)
		}
	}
	if err := atomicfile.Write(path, text, 0o600); err != nil {
		return false, fmt.Errorf("write the backup: %w", err)
	}
	return true, nil
}

func restoreCommand(std *stdio.Streams) *cobra.Command {
	var file, dir string
	cmd := &cobra.Command{
		Use:     "restore FILE",
		Short:   "Restore a backup into an empty data folder, before the relay starts",
		Example: "  adit relay restore relay.backup --data_dir /var/lib/adit-relay",
		Args:    command.Args(1, 1, "the backup's file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := loadConfig(file)
			if err != nil {
				return err
			}
			if dir != "" {
				cfg.DataDir = dir
			}
			if cfg.DataDir == "" {
				return errors.New("name the data folder with --data_dir")
			}
			if info, err := os.Stat(args[0]); err == nil && info.Size() > admin.MaxReply {
				return fmt.Errorf("%s is too large for a backup", args[0])
			}
			data, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("read the backup: %w", err)
			}
			restored, err := backup.Restore(cmd.Context(), cfg, data)
			if err != nil {
				return err
			}
			if std.JSON {
				return std.Print(restored, nil)
			}
			std.Say("Restored %d clients, %d names and ports, and %d policies into %s.", restored.Clients, restored.Claims, restored.Policies, restored.DataDir)
			std.Say("Now start the relay as before, on this folder: adit relay start --domain DOMAIN%s", dataDirHint(restored.DataDir))
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file of the relay")
	cmd.Flags().StringVar(&dir, "data_dir", "", "data folder, if it is not the usual one")
	return cmd
}
