package relay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/localtime"
	"adit/cli/relay/admin"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/internal/visible"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/sink"
)

// shownSink is a sink with the ETag that its next change may name.
type shownSink struct {
	console.Sink
	ETag string `json:"etag"`
}

func sinkPath(name string) string { return "/api/v1/sinks/" + url.PathEscape(name) }

func sinkCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	a := newRunning(std, getenv)
	return a.Flags(command.Group("sink", "Forward access events, the audit log and client alerts", "",
		sinkSetCommand(a),
		sinkShowCommand(a),
		listing[console.Sink]{
			use: "list", short: "List the sinks and their state", example: "  adit relay sink list",
			path: "/api/v1/sinks", heading: "NAME|WHERE|EVENTS|SENT|WAITING|DROPPED|LAST ERROR",
			narrower: []table.Step{table.Drop("EVENTS"), table.Squeeze("WHERE", 24), table.Squeeze("NAME", 12)},
			row: func(s console.Sink) []any {
				return []any{s.Name, s.URL + s.Address, strings.Join(s.Events, ","), s.State.Sent, s.State.Queued, s.State.Dropped, s.State.LastError}
			},
			none: "There is no sink. Add one: adit relay sink set NAME URL",
		}.command(a),
		sinkTestCommand(a),
		removal{
			use: "delete NAME", short: "Delete a sink", example: "  adit relay sink delete siem",
			argument: "the sink's name", key: "name", path: sinkPath, said: "%s is deleted.",
		}.command(a),
	))
}

// sinkFlags are the flags of sink set, in addition to a name and a URL.
type sinkFlags struct {
	config             sink.Config // what flags set as they are
	caFile, secretFile string
	facility           int
	disabled           bool
	ifMatch            string
}

func sinkSetCommand(a *running) *cobra.Command {
	var f sinkFlags
	set := &cobra.Command{
		Use:   "set NAME URL",
		Short: "Forward access events, the audit log or client alerts to a webhook or syslog",
		Long: `Forward access events, the audit log or client alerts to a URL: https://… is a
webhook; udp://HOST:PORT, tcp://HOST:PORT and tls://HOST:PORT are syslog
(RFC 5424). Client alerts tell when a client has been away for a minute, when it
is back, and what agents report.

With --if_match, if somebody else has changed the sink in the meantime, their
change is kept and the exit code is 1. Without it, the sink is replaced.`,
		Example: `  adit relay sink set siem https://siem.example.com/adit --secret_file hook.secret --events access,audit
  adit relay sink set alerts https://alerts.example.com/adit --events client
  adit relay sink set log tls://syslog.example.com:6514 --refused_only`,
		Args: command.Args(2, 2, "a name and a URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.read(a.std, args[1])
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("facility") {
				c.Facility = &f.facility
			}
			var s shownSink
			s.ETag, err = a.Replace(cmd.Context(), command.QuotedTag(f.ifMatch), http.MethodPut, sinkPath(args[0]), c, &s.Sink)
			var changed *admin.ChangedError
			if errors.As(err, &changed) {
				return fmt.Errorf("%w with `adit relay sink show %s`", err, args[0])
			}
			if err != nil {
				return err
			}
			return a.std.Print(s, func(w io.Writer) {
				fmt.Fprintf(w, "%s is set. Try it with: adit relay sink test %s\n", s.Name, s.Name)
			})
		},
	}
	set.Flags().StringSliceVar(&f.config.Events, "events", []string{sink.Access}, "any of access, audit and client")
	set.Flags().BoolVar(&f.config.RefusedOnly, "refused_only", false, "forward only access events that a rule refused")
	set.Flags().StringVar(&f.secretFile, "secret_file", "", "file with the secret for signing webhook deliveries")
	set.Flags().StringVar(&f.caFile, "ca", "", "PEM file with the authority of the syslog server, for tls://")
	set.Flags().IntVar(&f.facility, "facility", 16, "syslog facility, 0 to 23")
	set.Flags().BoolVar(&f.disabled, "disabled", false, "keep the sink, but send nothing")
	set.Flags().StringVar(&f.ifMatch, "if_match", "", `replace the sink only if it still has this etag, which "show" prints`)
	return set
}

// read returns the sink at where, including the contents of the files that flags name.
func (f *sinkFlags) read(std *stdio.Streams, where string) (sink.Config, error) {
	c, on := f.config, !f.disabled
	c.Enabled = &on
	switch scheme, _, _ := strings.Cut(where, "://"); scheme {
	case "http", "https":
		c.Type, c.URL = sink.Webhook, where
	case "udp", "tcp", "tls":
		c.Type, c.Address = sink.Syslog, where
	default:
		return c, command.Usagef("the URL must be https://… for a webhook, or udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT for syslog, not %q", where)
	}
	for _, file := range []struct {
		name string
		to   *string
	}{{f.caFile, &c.CA}, {f.secretFile, &c.Secret}} {
		if file.name == "" {
			continue
		}
		text, err := std.Secret(file.name)
		if err != nil {
			return c, err
		}
		*file.to = text
	}
	return c, nil
}

func sinkShowCommand(a *running) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a sink, with the etag for set --if_match",
		Example: "  adit relay sink show siem --json",
		Args:    command.Args(1, 1, "the sink's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var s shownSink
			var err error
			if s.ETag, err = a.Replace(cmd.Context(), "", http.MethodGet, sinkPath(args[0]), nil, &s.Sink); err != nil {
				return err
			}
			return a.std.PrintPage(s, func(w io.Writer) {
				fmt.Fprintf(w, "Name\t%s\nWhere\t%s\nEvents\t%s\nOnly refused\t%s\nEnabled\t%s\nChanged\t%s\nETag\t%s\n",
					s.Name, visible.Text(s.URL+s.Address), strings.Join(s.Events, ", "), yesNo(s.RefusedOnly), yesNo(s.Enabled), localtime.Minute(s.ChangedAt), s.ETag)
			})
		},
	}
}

func sinkTestCommand(a *running) *cobra.Command {
	return &cobra.Command{
		Use:     "test NAME",
		Short:   "Send a test event to a sink",
		Example: "  adit relay sink test siem",
		Args:    command.Args(1, 1, "the sink's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var t console.SinkTest
			if err := a.Call(cmd.Context(), http.MethodPost, sinkPath(args[0])+"/test", nil, &t); err != nil {
				return err
			}
			if !t.OK {
				return errors.New("the sink did not accept the event: " + t.Error)
			}
			return a.std.Print(t, func(w io.Writer) { fmt.Fprintln(w, "The sink took the event.") })
		},
	}
}
