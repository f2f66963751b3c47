package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/sink"
)

// shownSink is a sink with what the next change of it may name.
type shownSink struct {
	console.Sink
	ETag string `json:"etag"`
}

func relaySinkCommand(env *Env) *cobra.Command {
	a := &relayAdmin{env: env}
	path := func(name string) string { return "/api/v1/sinks/" + url.PathEscape(name) }
	var c sink.Config
	var caFile, secretFile, ifMatch string
	var facility int
	var disabled bool
	set := &cobra.Command{
		Use:   "set NAME URL",
		Short: "Send access events, or the audit log, on to a webhook or syslog",
		Long: `Send access events, or the audit log, on. The URL says where to: https://… is a
webhook; udp://HOST:PORT, tcp://HOST:PORT and tls://HOST:PORT are syslog
(RFC 5424).

With --if_match, if somebody else has changed the sink meanwhile, theirs stays,
and the exit code is 1. Without it, what is there is replaced.`,
		Example: `  adit relay sink set siem https://siem.example.com/adit --secret_file hook.secret --events access,audit
  adit relay sink set log tls://syslog.example.com:6514 --refused_only`,
		Args: args(2, 2, "a name and a URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch scheme, _, _ := strings.Cut(args[1], "://"); scheme {
			case "http", "https":
				c.Type, c.URL = sink.Webhook, args[1]
			case "udp", "tcp", "tls":
				c.Type, c.Address = sink.Syslog, args[1]
			default:
				return usagef("the URL must be https://… for a webhook, or udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT for syslog, and %q is none of them", args[1])
			}
			for _, f := range []struct {
				name string
				to   *string
			}{{caFile, &c.CA}, {secretFile, &c.Secret}} {
				if f.name == "" {
					continue
				}
				text, err := readSecret(env, f.name)
				if err != nil {
					return err
				}
				*f.to = text
			}
			if cmd.Flags().Changed("facility") {
				c.Facility = &facility
			}
			on := !disabled
			c.Enabled = &on
			var s shownSink
			var err error
			s.ETag, err = a.replace(cmd.Context(), quotedTag(ifMatch), http.MethodPut, path(args[0]), c, &s.Sink)
			var changed *changedError
			if errors.As(err, &changed) {
				return fmt.Errorf("%w with `adit relay sink show %s`", err, args[0])
			}
			if err != nil {
				return err
			}
			return env.print(s, func(w io.Writer) {
				fmt.Fprintf(w, "%s is set. Try it with: adit relay sink test %s\n", s.Name, s.Name)
			})
		},
	}
	set.Flags().StringSliceVar(&c.Events, "events", []string{sink.Access}, "access, audit, or both")
	set.Flags().BoolVar(&c.RefusedOnly, "refused_only", false, "of access events only those that a rule refused")
	set.Flags().StringVar(&secretFile, "secret_file", "", "file with the secret that signs a webhook's deliveries")
	set.Flags().StringVar(&caFile, "ca", "", "PEM file to trust a syslog server by, for tls://")
	set.Flags().IntVar(&facility, "facility", 16, "syslog facility, 0 to 23")
	set.Flags().BoolVar(&disabled, "disabled", false, "keep it, and send nothing")
	set.Flags().StringVar(&ifMatch, "if_match", "", `replace only the sink that has this etag, as "show" prints it`)
	show := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a sink, with the etag for set --if_match",
		Example: "  adit relay sink show siem --json",
		Args:    args(1, 1, "the sink's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var s shownSink
			var err error
			if s.ETag, err = a.replace(cmd.Context(), "", http.MethodGet, path(args[0]), nil, &s.Sink); err != nil {
				return err
			}
			return env.printPage(s, func(w io.Writer) {
				fmt.Fprintf(w, "Name\t%s\nWhere\t%s\nEvents\t%s\nOnly refused\t%s\nEnabled\t%s\nChanged\t%s\nETag\t%s\n",
					s.Name, printable(s.URL+s.Address), strings.Join(s.Events, ", "), yesNo(s.RefusedOnly), yesNo(s.Enabled), minute(s.ChangedAt), s.ETag)
			})
		},
	}
	return a.flag(group("sink", "Where access events and the audit log are sent on", "",
		set, show,
		listing[console.Sink]{
			use: "list", short: "List the sinks, and how they fare", example: "  adit relay sink list",
			path: "/api/v1/sinks", heading: "NAME|WHERE|EVENTS|SENT|WAITING|DROPPED|LAST ERROR",
			narrower: []step{drop("EVENTS"), squeeze("WHERE", 24), squeeze("NAME", 12)},
			row: func(s console.Sink) []any {
				return []any{s.Name, s.URL + s.Address, strings.Join(s.Events, ","), s.State.Sent, s.State.Queued, s.State.Dropped, s.State.LastError}
			},
			none: "There is no sink. Add one: adit relay sink set NAME URL",
		}.command(a),
		&cobra.Command{
			Use:     "test NAME",
			Short:   "Send one event to a sink now",
			Example: "  adit relay sink test siem",
			Args:    args(1, 1, "the sink's name"),
			RunE: func(cmd *cobra.Command, args []string) error {
				var t console.SinkTest
				if err := a.call(cmd.Context(), http.MethodPost, path(args[0])+"/test", nil, &t); err != nil {
					return err
				}
				if !t.OK {
					return errors.New("the sink did not take the event: " + t.Error)
				}
				return env.print(t, func(w io.Writer) { fmt.Fprintln(w, "The sink took the event.") })
			},
		},
		removal{
			use: "delete NAME", short: "Delete a sink", example: "  adit relay sink delete siem",
			argument: "the sink's name", key: "name", path: path, said: "%s is deleted.",
		}.command(a),
	))
}

func relayDomainsCommand(env *Env) *cobra.Command {
	a := &relayAdmin{env: env}
	return a.flag(listing[console.Domain]{
		use: "domains", short: "List the names that clients have, and how those of their own were proved",
		example: "  adit relay domains",
		path:    "/api/v1/domains", heading: "DOMAIN|CLIENT|RUNNING|PROVED BY",
		narrower: []step{squeeze("CLIENT", 16)},
		row:      func(d console.Domain) []any { return []any{d.Domain, d.Client, yesNo(d.Running), d.Proof} },
		none:     "No client has a name now.",
	}.command(a))
}
