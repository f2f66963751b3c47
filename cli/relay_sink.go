package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/sink"
)

func relaySinkCommand(env *Env) *cobra.Command {
	a := &relayAdmin{env: env}
	path := func(name string) string { return "/api/v1/sinks/" + url.PathEscape(name) }
	var c sink.Config
	var caFile, secretFile string
	var facility int
	var disabled bool
	set := &cobra.Command{
		Use:   "set NAME URL",
		Short: "Send access events, or the audit log, on to a webhook or syslog",
		Long: `Send access events, or the audit log, on. The URL says where to: https://… is a
webhook, udp://HOST:PORT, tcp://HOST:PORT and tls://HOST:PORT are syslog (RFC 5424).`,
		Example: `  adit relay sink set siem https://siem.example.com/adit --secret_file hook.secret --events access,audit
  adit relay sink set log tls://syslog.example.com:6514 --refused_only`,
		Args: args(2, 2, "a name and a URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if scheme, _, _ := strings.Cut(args[1], "://"); scheme == "http" || scheme == "https" {
				c.Type, c.URL = sink.Webhook, args[1]
			} else {
				c.Type, c.Address = sink.Syslog, args[1]
			}
			for _, f := range []struct {
				name string
				to   *string
			}{{caFile, &c.CA}, {secretFile, &c.Secret}} {
				if f.name == "" {
					continue
				}
				text, err := os.ReadFile(f.name)
				if err != nil {
					return err
				}
				*f.to = strings.TrimSpace(string(text))
			}
			if cmd.Flags().Changed("facility") {
				c.Facility = &facility
			}
			on := !disabled
			c.Enabled = &on
			var s console.Sink
			if err := a.call(cmd.Context(), http.MethodPut, path(args[0]), c, &s); err != nil {
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
	return a.flag(group("sink", "Where access events and the audit log are sent on", "",
		set,
		&cobra.Command{
			Use:   "list",
			Short: "List the sinks, and how they fare",
			Args:  args(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error {
				var list relayList[console.Sink]
				if err := a.call(cmd.Context(), http.MethodGet, "/api/v1/sinks", nil, &list); err != nil {
					return err
				}
				return env.print(list, func(w io.Writer) {
					fmt.Fprintln(w, "NAME\tWHERE\tEVENTS\tSENT\tWAITING\tDROPPED\tLAST ERROR")
					for _, s := range list.Items {
						fmt.Fprintf(w, "%s\t%s%s\t%s\t%d\t%d\t%d\t%s\n", s.Name, s.URL, s.Address, strings.Join(s.Events, ","),
							s.State.Sent, s.State.Queued, s.State.Dropped, s.State.LastError)
					}
				})
			},
		},
		&cobra.Command{
			Use:   "test NAME",
			Short: "Send one event to a sink now",
			Args:  args(1, 1, "the sink's name"),
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
		&cobra.Command{
			Use:   "delete NAME",
			Short: "Delete a sink",
			Args:  args(1, 1, "the sink's name"),
			RunE: func(cmd *cobra.Command, args []string) error {
				if err := a.call(cmd.Context(), http.MethodDelete, path(args[0]), nil, nil); err != nil {
					return err
				}
				if env.json {
					return env.print(map[string]any{"name": args[0], "deleted": true}, nil)
				}
				env.say("%s is deleted.", args[0])
				return nil
			},
		},
	))
}

func relayDomainsCommand(env *Env) *cobra.Command {
	a := &relayAdmin{env: env}
	return a.flag(&cobra.Command{
		Use:   "domains",
		Short: "List the names that clients have, and how those of their own were proved",
		Args:  args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list relayList[console.Domain]
			if err := a.call(cmd.Context(), http.MethodGet, "/api/v1/domains", nil, &list); err != nil {
				return err
			}
			return env.print(list, func(w io.Writer) {
				fmt.Fprintln(w, "DOMAIN\tCLIENT\tRUNNING\tPROVED BY")
				for _, d := range list.Items {
					fmt.Fprintf(w, "%s\t%s\t%v\t%s\n", d.Domain, d.Client, d.Running, d.Proof)
				}
			})
		},
	})
}
