package cli

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
	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/cli/terminal"
	"adit/internal/visible"
	"adit/localapi/client"
)

func logsCommand(env *Env) *cobra.Command {
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
				return command.Usagef("--level must be debug, info, warn or error, and %q is not", level)
			}
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			if follow {
				return env.followLogs(cmd.Context(), c, q)
			}
			lines, err := c.Logs(cmd.Context(), q)
			if err != nil {
				return err
			}
			if env.std.JSON {
				return env.std.Print(stdio.ListOf(lines), nil)
			}
			for _, line := range lines {
				if err := env.writeLog(line); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&level, "level", "info", "lowest level shown: debug, info, warn, error")
	cmd.Flags().IntVar(&q.Limit, "limit", 100, "at most this many")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes, until Ctrl-C; with --json one document a line")
	return cmd
}

var levels = []client.LogLevel{client.LogLevelDebug, client.LogLevelInfo, client.LogLevelWarn, client.LogLevelError}

// followLogs shows what there is and what comes. What there is it asks for once the
// events have begun, so that no line comes between the two; one may come by both.
func (e *Env) followLogs(ctx context.Context, c *client.Client, q client.LogQuery) error {
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
				if err := e.writeLog(line); err != nil {
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
		if err := e.writeLog(line); err != nil {
			return err
		}
	}
	return nil
}

func (e *Env) writeLog(line client.LogEntry) error {
	if e.std.JSON {
		return json.NewEncoder(e.std.Out).Encode(line)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-5s %s", localtime.Text(line.Time), strings.ToUpper(string(line.Level)), visible.Text(line.Message))
	for _, key := range slices.Sorted(maps.Keys(line.Fields)) {
		fmt.Fprintf(&b, " %s=%s", key, visible.Text(fmt.Sprint(line.Fields[key])))
	}
	_, err := io.WriteString(e.std.Out, terminal.Break(b.String()+"\n", logColumns, e.std.Columns()))
	return err
}

// logColumns is how much of a line of the log has its time and level.
const logColumns = len("2006-01-02 15:04:05 ERROR ")

func doctorCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Try everything a working tunnel needs, and say what to do",
		Long: `Try everything a working tunnel needs, and say what to do.
The exit code is 1 if something failed.`,
		Example: `  adit doctor
  adit doctor --json > report.json`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			checks, err := c.Diagnose(cmd.Context())
			if err != nil {
				return err
			}
			err = env.std.PrintPage(stdio.ListOf(checks), func(w io.Writer) {
				for _, check := range checks {
					fmt.Fprintf(w, "%s\t%s: %s\n", check.Status, visible.Text(check.Tried), visible.Text(check.Result))
					if check.Advice != "" {
						fmt.Fprintf(w, "\t  -> %s\n", visible.Text(check.Advice))
					}
				}
			})
			if err == nil && slices.ContainsFunc(checks, func(c client.Check) bool { return c.Status == "failed" }) {
				return command.ErrQuiet
			}
			return err
		},
	}
}
