package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"adit/tunnel/relay/console"
)

const maxPolicyFile = 1 << 20

func relayPolicyCommand(env *Env) *cobra.Command {
	a := &relayAdmin{env: env}
	explain := console.Question{}
	explainCommand := &cobra.Command{
		Use:     "explain TARGET ADDRESS",
		Short:   "Say which rule decides on a visitor of an address",
		Example: "  adit relay policy explain shop.tunnel.example.com 203.0.113.9",
		Args:    args(2, 2, "the target and the visitor's address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			explain.Address = args[1]
			var e console.Explanation
			in := explain
			in.Target = ""
			if err := a.call(cmd.Context(), http.MethodPost, policyPath(args[0])+"/explain", in, &e); err != nil {
				return err
			}
			return env.print(e, func(w io.Writer) { explanation(w, e) })
		},
	}
	explainCommand.Flags().StringVar(&explain.User, "user", "", "user that the visitor names")
	explainCommand.Flags().StringVar(&explain.Password, "password", "", "that user's password")
	return a.flag(group("policy", "Who is let in to an endpoint", `Who is let in to an endpoint. A target is a domain, or tcp.PORT or udp.PORT. A
policy is one JSON document; docs/relay.md names its fields.`,
		&cobra.Command{
			Use:     "set TARGET [FILE]",
			Short:   "Set a target's policy from a JSON file, or from standard input",
			Example: `  echo '{"allow":["203.0.113.0/24"]}' | adit relay policy set shop`,
			Args:    args(1, 2, "the target and a file"),
			RunE: func(cmd *cobra.Command, args []string) error {
				document, err := readPolicy(env, args[1:])
				if err != nil {
					return err
				}
				var p console.Policy
				if err := a.call(cmd.Context(), http.MethodPut, policyPath(args[0]), document, &p); err != nil {
					return err
				}
				return env.print(p, func(w io.Writer) { fmt.Fprintf(w, "The policy of %s is in force.\n", p.Target) })
			},
		},
		&cobra.Command{
			Use:   "show TARGET",
			Short: "Show a target's policy",
			Args:  args(1, 1, "the target"),
			RunE: func(cmd *cobra.Command, args []string) error {
				var p console.Policy
				if err := a.call(cmd.Context(), http.MethodGet, policyPath(args[0]), nil, &p); err != nil {
					return err
				}
				return env.print(p, func(w io.Writer) {
					enc := json.NewEncoder(w)
					enc.SetIndent("", "  ")
					enc.Encode(p.Policy)
				})
			},
		},
		&cobra.Command{
			Use:   "list",
			Short: "List the policies",
			Args:  args(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error {
				var list relayList[console.Policy]
				if err := a.call(cmd.Context(), http.MethodGet, "/api/v1/policies", nil, &list); err != nil {
					return err
				}
				return env.print(list, func(w io.Writer) {
					fmt.Fprintln(w, "TARGET\tCHANGED")
					for _, p := range list.Items {
						fmt.Fprintf(w, "%s\t%s\n", p.Target, p.ChangedAt.In(zone).Format("2006-01-02 15:04"))
					}
				})
			},
		},
		&cobra.Command{
			Use:   "delete TARGET",
			Short: "Delete a target's policy: everybody is let in",
			Args:  args(1, 1, "the target"),
			RunE: func(cmd *cobra.Command, args []string) error {
				if err := a.call(cmd.Context(), http.MethodDelete, policyPath(args[0]), nil, nil); err != nil {
					return err
				}
				if env.json {
					return env.print(map[string]any{"target": args[0], "deleted": true}, nil)
				}
				env.say("The policy of %s is deleted.", args[0])
				return nil
			},
		},
		explainCommand,
	))
}

func policyPath(target string) string { return "/api/v1/policies/" + url.PathEscape(target) }

func readPolicy(env *Env, file []string) (json.RawMessage, error) {
	in := env.In
	if len(file) == 1 && file[0] != "-" {
		f, err := os.Open(file[0])
		if err != nil {
			return nil, fmt.Errorf("read the policy: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxPolicyFile))
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	if !json.Valid(data) {
		return nil, errors.New("the policy is not one JSON document")
	}
	return data, nil
}

func explanation(w io.Writer, e console.Explanation) {
	switch {
	case e.Allowed:
		fmt.Fprintf(w, "let in to %s\n", e.Target)
	case e.Shadow:
		fmt.Fprintf(w, "let in to %s, and recorded as refused by %s: %s\n", e.Target, e.Rule, e.Detail)
	default:
		fmt.Fprintf(w, "refused at %s by %s: %s\n", e.Target, e.Rule, e.Detail)
	}
	for _, s := range e.Steps {
		verdict := "lets in"
		if s.Refuses {
			verdict = "refuses"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", s.Rule, verdict, s.Detail)
	}
}

func relayAccessCommand(env *Env) *cobra.Command {
	a := &relayAdmin{env: env}
	var limit int
	var export string
	filters := map[string]*string{}
	cmd := &cobra.Command{
		Use:     "access",
		Short:   "Search the access log of a running relay",
		Example: "  adit relay access --host shop.tunnel.example.com --status 5xx",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := url.Values{"limit": {strconv.Itoa(min(limit, 1000))}}
			for name, value := range filters {
				if *value != "" {
					q.Set(name, *value)
				}
			}
			if export != "" {
				q.Del("limit")
				if cmd.Flags().Changed("limit") {
					q.Set("limit", strconv.Itoa(limit))
				}
				q.Set("format", "ndjson")
				if strings.HasSuffix(export, ".csv") {
					q.Set("format", "csv")
				}
				return a.export(cmd.Context(), "/api/v1/access/export?"+q.Encode(), export)
			}
			var list console.AccessPage
			for {
				var page console.AccessPage
				if err := a.call(cmd.Context(), http.MethodGet, "/api/v1/access?"+q.Encode(), nil, &page); err != nil {
					return err
				}
				list.Items = append(list.Items, page.Items...)
				list.Next, list.Complete = page.Next, page.Complete
				if list.Complete || len(list.Items) >= limit {
					break
				}
				q.Set("cursor", page.Next)
				q.Set("limit", strconv.Itoa(min(limit-len(list.Items), 1000)))
			}
			return env.print(list, func(w io.Writer) {
				for i := len(list.Items) - 1; i >= 0; i-- {
					e := list.Items[i]
					status := ""
					if e.Status != 0 {
						status = strconv.Itoa(e.Status)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s %s%s\t%d in, %d out\t%v\t%s\n", e.Time.In(zone).Format("01-02 15:04:05"),
						e.Visitor, status, e.Method, e.Host, e.Path, e.BytesIn, e.BytesOut, e.Duration.Round(time.Millisecond), e.Refused)
				}
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "how many events, newest last")
	cmd.Flags().StringVar(&export, "export", "", "write all that is found to a file instead, .csv or NDJSON; - for standard output")
	for name, help := range map[string]string{
		"endpoint_id": "of one endpoint", "host": "of a name", "address": "of an address or CIDR", "path": "whose path begins so",
		"client_id": "of one client", "country": "of a country as DE, a region as US-CA, or none", "method": "a method", "node": "of one node",
		"status": "a status as 404, or 4xx", "refused": "refused by a rule, or any, none, shadow", "since": "a time as 2006-01-02T15:04:05Z", "until": "a time",
	} {
		filters[name] = cmd.Flags().String(name, "", help)
	}
	return a.flag(cmd)
}
