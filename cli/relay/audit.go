package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/console"
)

func auditCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	a := newRunning(std, getenv)
	return a.Flags(command.Group("audit", "Show who changed what at a relay", "", auditListCommand(a), auditVerifyCommand(a), auditExportCommand(a)))
}

func auditListCommand(a *running) *cobra.Command {
	var limit int
	filters := map[string]*string{}
	list := &cobra.Command{
		Use:   "list",
		Short: "List who changed what, newest last",
		Example: `  adit relay audit list --action client. --limit 20
  adit relay audit list --find shop --since 24h`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := question(filters, time.Now())
			if err != nil {
				return err
			}
			page, err := a.auditEntries(cmd.Context(), q, limit)
			if err != nil {
				return err
			}
			rows := table.New("ENTRY|TIME|WHO|FROM|ACTION|TARGET", table.Shorten("TIME", localtime.WithoutYear), table.Squeeze("WHO", 16), table.Drop("FROM"))
			for _, e := range slices.Backward(page.Items) {
				who := e.Actor.Kind
				if e.Actor.Name != "" {
					who += " " + e.Actor.Name
				}
				rows.Add(e.Seq, localtime.Text(e.Time), who, e.Actor.Address, e.Action, e.Target)
			}
			return a.std.PrintTable(page, rows, "The audit log has no matching entries.")
		},
	}
	list.Flags().IntVar(&limit, "limit", 100, "how many entries")
	for flag, usage := range map[string]string{
		"action": "only actions that start with this, such as client.", "actor": "only by this name, or a kind such as admin_token",
		"target": "only about this client, domain or sink", "find": "only with this text, ignoring case",
		"since": sinceUsage, "until": untilUsage,
	} {
		parameter := flag
		if flag == "find" {
			parameter = "q"
		}
		filters[parameter] = list.Flags().String(flag, "", usage)
	}
	return list
}

// auditEntries returns up to limit entries. If few of many match, a relay searches the log in
// several responses.
func (a *running) auditEntries(ctx context.Context, q url.Values, limit int) (console.AuditPage, error) {
	all := console.AuditPage{Items: []audit.Entry{}}
	for {
		q.Set("limit", strconv.Itoa(limit-len(all.Items)))
		var page console.AuditPage
		if err := a.Call(ctx, http.MethodGet, "/api/v1/audit?"+q.Encode(), nil, &page); err != nil {
			return all, err
		}
		all.Items, all.Next = append(all.Items, page.Items...), page.Next
		if all.Next == 0 || len(all.Items) >= limit {
			return all, nil
		}
		q.Set("before", strconv.FormatUint(all.Next, 10))
	}
}

// auditVerifyCommand checks the chain on this side, so that nobody has to be trusted.
func auditVerifyCommand(a *running) *cobra.Command {
	var head string
	verify := &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Verify that no entry of the audit log was altered, removed or inserted",
		Long: `Verify the whole hash chain of the audit log: each entry must contain the hash
of the previous one, and its own hash must match its content. The entries are
read from a running relay, or from a file written by "adit relay audit export",
and verified by this program. Entries missing at the end can only be detected by
a hash that you noted earlier: give it as --head. The exit code is 1 if the
chain is broken.`,
		Example: "  adit relay audit verify --head 5d41…",
		Args:    command.Args(0, 1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v := audit.Verifier{Wanted: head}
			check := func(r io.Reader) error { return checkAudit(r, &v) }
			var err error
			if len(args) == 1 {
				err = withFile(args[0], check)
			} else {
				err = a.Stream(cmd.Context(), "/api/v1/audit/export", check)
			}
			if err != nil {
				return err
			}
			r := v.Result()
			if !r.OK {
				if a.std.JSON {
					if err := a.std.Print(r, nil); err != nil {
						return err
					}
				}
				where := ""
				if r.BrokenAt != 0 {
					where = fmt.Sprintf(" at entry %d", r.BrokenAt)
				}
				return fmt.Errorf("the audit log is broken%s: %s; compare it with a backup", where, r.Reason)
			}
			return a.std.Print(r, func(w io.Writer) {
				fmt.Fprintf(w, "%d entries, intact.\nNote the hash of the last entry, to detect later if entries are missing at the end:\n%s\n", r.Entries, r.Head)
			})
		},
	}
	verify.Flags().StringVar(&head, "head", "", "hash noted earlier, which must be in the chain")
	return verify
}

func auditExportCommand(a *running) *cobra.Command {
	return &cobra.Command{
		Use:   "export FILE",
		Short: "Write the audit log to a file, one entry per line",
		Example: `  adit relay audit export audit.ndjson
  adit relay audit export - | jq -r .action`,
		Args: command.Args(1, 1, "the file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.export(cmd.Context(), "/api/v1/audit/export", args[0])
		},
	}
}

// checkAudit feeds entries, one per line, to a verifier.
func checkAudit(r io.Reader, v *audit.Verifier) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 2*audit.MaxEntry)
	for seq := uint64(1); lines.Scan(); seq++ {
		e, err := audit.ParseEntry(lines.Bytes())
		if err != nil {
			v.Break(seq, err.Error())
			continue
		}
		v.Add(e)
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		v.Break(v.Result().Entries+1, "the entry is too long")
		return nil
	}
	return lines.Err()
}

func withFile(name string, f func(io.Reader) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return f(file)
}

// export writes a long response to a file, or to standard output for "-".
func (a *running) export(ctx context.Context, path, name string) error {
	return a.Stream(ctx, path, func(r io.Reader) error {
		if name == "-" {
			_, err := io.Copy(a.std.Out, r)
			return err
		}
		file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		n, err := io.Copy(file, r)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		if a.std.JSON {
			return a.std.Print(map[string]any{"file": name, "bytes": n}, nil)
		}
		a.std.Say("%d bytes are in %s.", n, name)
		return nil
	})
}
