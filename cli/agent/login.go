package agent

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/stdio"
	"adit/internal/textfile"
	"adit/localapi/client"
)

// maxToken bounds how much of a token is read from standard input.
const maxToken = 4096

// LoginCommand is adit login.
func LoginCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return &cobra.Command{
		Use:     "login TOKEN [CLIENT_ID]",
		Aliases: []string{"authtoken"},
		Short:   "Connect this machine to a relay with an auth token",
		Long: `Connect this machine to a relay, with an auth token from its operator.

The operator creates a token with "adit relay client add NAME". The daemon saves
it and uses it immediately. If the relay refuses the token, nothing changes. If
no daemon is running, and none is installed as a service, the token is saved for
the daemons that you start yourself.

With - the token is read from standard input, which keeps it out of the shell's
history.

With CLIENT_ID, the name or id of a client at the relay, a token of any other
client is refused.`,
		Example: `  adit login adit_AbCd…
  adit login - < token.txt
  adit login adit_AbCd… workshop-nas`,
		Args: command.Args(1, 2, "TOKEN [CLIENT_ID]"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			token := client.AuthConfigure{AuthToken: strings.TrimSpace(args[0])}
			if args[0] == "-" {
				line, err := bufio.NewReader(io.LimitReader(std.In, maxToken)).ReadString('\n')
				if err != nil && !errors.Is(err, io.EOF) {
					return fmt.Errorf("read the token from the standard input: %w", err)
				}
				text, err := textfile.Of([]byte(line))
				if err != nil {
					return fmt.Errorf("read the token from the standard input: %w", err)
				}
				token.AuthToken = strings.TrimSpace(text)
			}
			if token.AuthToken == "" {
				return command.Usagef("the token is empty")
			}
			if len(args) > 1 {
				token.ClientID = args[1]
			}
			c, own, err := find.ClientOrEmbedded(cmd.Context(), "adit login")
			if err != nil {
				return err
			}
			defer func() { err = cmp.Or(own.End(), err) }()
			auth, err := daemon.Patiently(cmd.Context(), func() (client.AuthStatus, error) {
				return c.ConfigureAuth(cmd.Context(), token)
			})
			var refusal *client.Error
			if errors.As(err, &refusal) && refusal.Code == client.ErrorCodeRelayUnreachable {
				// doctor would test the relay of the current token, if there is one.
				return errors.New(refusal.Message + "; nothing was changed, so try again when it answers")
			}
			if err != nil {
				return err
			}
			return std.Print(auth, func(w io.Writer) {
				fmt.Fprintf(w, "Connected to %s with the token %s.\n", auth.Relay, auth.TokenHint)
				if own.Runs() {
					fmt.Fprintf(w, "The token is saved. No daemon is running yet: the next command runs one for as long as it lasts,\n")
					fmt.Fprintf(w, "and adit start runs one permanently. A service has its own token.\n")
				}
				fmt.Fprintf(w, "Publish something: adit https 3000\n")
			})
		},
	}
}

// LogoutCommand is adit logout.
func LogoutCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return &cobra.Command{
		Use:     "logout",
		Short:   "Forget the token and close the session",
		Example: "  adit logout",
		Args:    command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			if _, err := daemon.Patiently(cmd.Context(), func() (struct{}, error) {
				return struct{}{}, c.ForgetAuth(cmd.Context())
			}); err != nil {
				return err
			}
			forgotten := struct {
				Configured bool `json:"configured"`
			}{}
			return std.Print(forgotten, func(w io.Writer) {
				fmt.Fprintln(w, "The token is forgotten and the session closed.")
			})
		},
	}
}
