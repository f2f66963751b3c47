package relay

import (
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/policy"
	"adit/tunnel/relay/console"
)

func explainCommand(a *running) *cobra.Command {
	var asked console.Question
	var passwordFile, certificateFile string
	cmd := &cobra.Command{
		Use:   "explain TARGET ADDRESS",
		Short: "Show which rule allows or refuses a visitor",
		Example: `  adit relay policy explain shop.tunnel.example.com 203.0.113.9
  adit relay policy explain shop 203.0.113.9 --at 2026-12-24T20:00:00Z --user ann --password_file -`,
		Args: command.Args(2, 2, "the target and the visitor's address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := asked
			in.Address = args[1]
			if passwordFile != "" {
				password, err := a.std.Secret(passwordFile)
				if err != nil {
					return err
				}
				in.Password = password
			}
			if certificateFile != "" {
				text, err := policy.ReadCertificates(certificateFile)
				if err != nil {
					return err
				}
				in.Certificate = text
			}
			var e console.Explanation
			if err := a.Call(cmd.Context(), http.MethodPost, policyPath(args[0])+"/explain", in, &e); err != nil {
				return err
			}
			return a.std.PrintPage(e, func(w io.Writer) { explanation(w, e) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&asked.Path, "path", "", "path that the visitor requests")
	f.StringVar(&asked.Type, "type", "", "http, https, tcp, tls or udp, if the target alone is ambiguous")
	f.StringVar(&asked.At, "at", "", "time of the visit, such as 2026-12-24T20:00:00Z (default now)")
	f.StringVar(&asked.User, "user", "", "user name that the visitor gives")
	f.StringVar(&asked.Email, "email", "", "email address of a visitor who has signed in")
	f.StringSliceVar(&asked.Groups, "group", nil, "group of a visitor who has signed in")
	f.BoolVar(&asked.Signed, "signed", false, "assume that the request has a valid webhook signature")
	f.StringVar(&certificateFile, "certificate", "", "PEM file with the visitor's certificate and its intermediates")
	f.StringVar(&passwordFile, "password_file", "", "file with the password of --user; - is standard input")
	return cmd
}

func policyPath(target string) string { return "/api/v1/policies/" + url.PathEscape(target) }

func explanation(w io.Writer, e console.Explanation) {
	switch {
	case e.Allowed && len(e.Steps) == 0:
		fmt.Fprintf(w, "allowed at %s: it has no rule about who may visit\n", e.Target)
	case e.Allowed:
		fmt.Fprintf(w, "allowed at %s\n", e.Target)
	case e.Shadow:
		fmt.Fprintf(w, "allowed at %s, but recorded as refused by %s: %s\n", e.Target, e.Rule, e.Detail)
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
