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
	sinceUsage = "only since a time such as 2026-11-01T00:00:00Z, a date, or a duration before now such as 24h"
	untilUsage = "only until such a time"
)

// question returns the query for filters, keyed by parameter name.
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
					return command.Usagef("--follow shows new events, and --export writes past ones; use only one of them")
				case q.Has("until"):
					return command.Usagef("--follow shows new events; it cannot be used with --until")
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
			return std.PrintTable(list, rows, "The access log has no matching entries.")
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "how many events, newest last")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show the last ten events, or --limit, then keep printing new ones until Ctrl-C; with --json, one document per line")
	cmd.Flags().StringVar(&export, "export", "", "write all matches to a file instead, as .csv or NDJSON; - is standard output")
	for name, help := range map[string]string{
		"endpoint_id": "only of this endpoint", "host": "only with this host name", "address": "only from this address or CIDR", "path": "only with a path that starts with this",
		"client_id": "only of this client", "user": "only of this user, signed in or by password", "country": "only from a country such as DE, a region such as US-CA, or none", "method": "only with this method", "node": "only of this node",
		"status": "only with a status such as 404 or 4xx", "refused": "only refused by this rule, or any, none or shadow", "since": sinceUsage, "until": untilUsage,
	} {
		filters[name] = cmd.Flags().String(name, "", help)
	}
	return a.Flags(cmd)
}
