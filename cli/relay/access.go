package relay

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/internal/bytesize"
	"adit/internal/span"
)

const (
	sinceUsage = "only since a time as 2026-11-01T00:00:00Z, a date, or a duration before now as 24h"
	untilUsage = "only until such a time"
)

// question is what filters ask for, by their parameters' names.
func question(filters map[string]*string, now time.Time) (url.Values, error) {
	q := url.Values{}
	for name, value := range filters {
		if *value == "" {
			continue
		}
		q.Set(name, *value)
		if name == "since" || name == "until" {
			at, err := parsePast(*value, now)
			if err != nil {
				return nil, command.Usagef("--%s: %s", name, err)
			}
			q.Set(name, at.Format(time.RFC3339Nano))
		}
	}
	return q, nil
}

func accessCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	a := newRunning(std, getenv)
	var limit int
	var export string
	var follow bool
	filters := map[string]*string{}
	cmd := &cobra.Command{
		Use:   "access",
		Short: "Search the access log of a running relay",
		Example: `  adit relay access --host shop.tunnel.example.com --status 5xx
  adit relay access --follow --refused any`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := question(filters, time.Now())
			if err != nil {
				return err
			}
			if follow {
				switch {
				case export != "":
					return command.Usagef("--follow shows what comes, and --export writes what there is; choose one of them")
				case q.Has("until"):
					return command.Usagef("--follow shows what comes, which is after any time that --until can name")
				case !cmd.Flags().Changed("limit"):
					limit = followBefore
				}
				return a.follow(cmd.Context(), q, limit)
			}
			if export != "" {
				if cmd.Flags().Changed("limit") {
					q.Set("limit", strconv.Itoa(limit))
				}
				q.Set("format", "ndjson")
				if strings.HasSuffix(export, ".csv") {
					q.Set("format", "csv")
				}
				return a.export(cmd.Context(), "/api/v1/access/export?"+q.Encode(), export)
			}
			list, err := a.accessList(cmd.Context(), q, limit)
			if err != nil {
				return err
			}
			rows := table.New("TIME|VISITOR|USER|STATUS|REQUEST|IN|OUT|TOOK|REFUSED BY",
				table.Drop("IN"), table.Drop("OUT"), table.Drop("USER"), table.Squeeze("REQUEST", 30), table.Drop("TOOK"), table.Squeeze("REQUEST", 20))
			for _, e := range slices.Backward(list.Items) {
				status := ""
				if e.Status != 0 {
					status = strconv.Itoa(e.Status)
				}
				rows.Add(localtime.WithoutYear(localtime.Text(e.Time)), e.Visitor, e.User, status, strings.TrimSpace(e.Method+" "+e.Host+e.Path),
					bytesize.Text(e.BytesIn), bytesize.Text(e.BytesOut), span.Text(e.Duration), e.Refused)
			}
			return std.PrintTable(list, rows, "The access log has nothing like it.")
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "how many events, newest last")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show the last ten, or as many as --limit says, and go on with what comes, until Ctrl-C; with --json one document a line")
	cmd.Flags().StringVar(&export, "export", "", "write all that is found to a file instead, .csv or NDJSON; - for standard output")
	for name, help := range map[string]string{
		"endpoint_id": "only of one endpoint", "host": "only of one name", "address": "only of an address or CIDR", "path": "only with a path that begins so",
		"client_id": "only of one client", "user": "only of one who has signed in or named itself by a password", "country": "only of a country as DE, a region as US-CA, or none", "method": "only with this method", "node": "only of one node",
		"status": "only with a status as 404, or 4xx", "refused": "only refused by this rule; or any, none, shadow", "since": sinceUsage, "until": untilUsage,
	} {
		filters[name] = cmd.Flags().String(name, "", help)
	}
	return a.Flags(cmd)
}
