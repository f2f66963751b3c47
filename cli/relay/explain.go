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
		Short: "Say which rule decides on a visitor of an address",
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
	f.StringVar(&asked.Path, "path", "", "path that the visitor asks for")
	f.StringVar(&asked.Type, "type", "", "http, https, tcp, tls or udp, if the target does not tell")
	f.StringVar(&asked.At, "at", "", "when, as 2026-12-24T20:00:00Z; without it now")
	f.StringVar(&asked.User, "user", "", "user that the visitor names")
	f.StringVar(&asked.Email, "email", "", "address of a visitor who has signed in")
	f.StringSliceVar(&asked.Groups, "group", nil, "group of a visitor who has signed in")
	f.BoolVar(&asked.Signed, "signed", false, "ask about a webhook whose signature is right")
	f.StringVar(&certificateFile, "certificate", "", "PEM file with the certificate that the visitor presents, and those between it and the authority")
	f.StringVar(&passwordFile, "password_file", "", "file with that user's password; - is standard input")
	return cmd
}

func policyPath(target string) string { return "/api/v1/policies/" + url.PathEscape(target) }

func explanation(w io.Writer, e console.Explanation) {
	switch {
	case e.Allowed && len(e.Steps) == 0:
		fmt.Fprintf(w, "let in to %s: no rule there is about who comes\n", e.Target)
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
