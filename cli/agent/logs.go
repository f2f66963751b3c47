package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/cli/terminal"
	"adit/internal/visible"
	"adit/localapi/client"
)

// LogsCommand is adit logs.
func LogsCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	var q client.LogQuery
	var level string
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show the daemon's recent log",
		Example: `  adit logs --level warn
  adit logs --follow`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckLimit(q.Limit); err != nil {
				return err
			}
			if q.Level = client.LogLevel(level); !slices.Contains(levels, q.Level) {
				return command.Usagef("--level must be debug, info, warn or error, not %q", level)
			}
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			if follow {
				return followLogs(cmd.Context(), std, c, q)
			}
			lines, err := c.Logs(cmd.Context(), q)
			if err != nil {
				return err
			}
			if std.JSON {
				return std.Print(stdio.ListOf(lines), nil)
			}
			for _, line := range lines {
				if err := writeLog(std, line); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&level, "level", "info", "lowest level shown: debug, info, warn, error")
	cmd.Flags().IntVar(&q.Limit, "limit", 100, "at most this many")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep printing new entries until Ctrl-C; with --json, one document per line")
	return cmd
}

var levels = []client.LogLevel{client.LogLevelDebug, client.LogLevelInfo, client.LogLevelWarn, client.LogLevelError}

// followLogs shows the existing lines and then new ones. It asks for the existing ones once the
// event stream has begun, so that no line is lost between the two; one may arrive by both.
func followLogs(ctx context.Context, std *stdio.Streams, c *client.Client, q client.LogQuery) error {
	var shown map[string]bool
	key := func(line client.LogEntry) string { return line.Time.String() + line.Message }
	for event, err := range c.Events(ctx, "") {
		var refusal *client.Error
		if errors.As(err, &refusal) {
			return err
		}
		if err != nil {
			continue
		}
		if shown == nil {
			shown = map[string]bool{}
			lines, err := c.Logs(ctx, q)
			if err != nil {
				return err
			}
			for _, line := range lines {
				shown[key(line)] = true
				if err := writeLog(std, line); err != nil {
					return err
				}
			}
		}
		if event.Type != client.EventLog {
			continue
		}
		var line client.LogEntry
		if err := event.Into(&line); err != nil {
			return err
		}
		if slices.Index(levels, line.Level) < slices.Index(levels, q.Level) || shown[key(line)] {
			continue
		}
		if err := writeLog(std, line); err != nil {
			return err
		}
	}
	return nil
}

func writeLog(std *stdio.Streams, line client.LogEntry) error {
	if std.JSON {
		return json.NewEncoder(std.Out).Encode(line)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-5s %s", localtime.Text(line.Time), strings.ToUpper(string(line.Level)), visible.Text(line.Message))
	for _, key := range slices.Sorted(maps.Keys(line.Fields)) {
		fmt.Fprintf(&b, " %s=%s", key, visible.Text(fmt.Sprint(line.Fields[key])))
	}
	_, err := io.WriteString(std.Out, terminal.Break(b.String()+"\n", logColumns, std.Columns()))
	return err
}

// logColumns is the width of the time and level in a log line.
const logColumns = len("2006-01-02 15:04:05 ERROR ")
