package relay

import (
	"errors"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/relay/admin"
	"adit/tunnel/relay/console"
)

// changeTries is how often reading and changing a client is retried if somebody else changes it in
// between.
const changeTries = 5

// change applies the flags given on the command line to a client's scope, and leaves the rest of it
// unchanged, even if somebody else has just set it.
func (s *scopeFlags) change(cmd *cobra.Command, a *running, name string) (console.Client, error) {
	var c console.Client
	etag, err := a.Replace(cmd.Context(), "", http.MethodGet, clientPath(name), nil, &c)
	if err != nil {
		return c, err
	}
	if err := s.over(cmd, &c.Scope); err != nil {
		return c, err
	}
	in := map[string]console.Scope{"scope": c.Scope}
	_, err = a.Replace(cmd.Context(), etag, http.MethodPatch, clientPath(name), in, &c)
	return c, err
}

func clientSetCommand(a *running) *cobra.Command {
	var flags scopeFlags
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change the limits of a client, with immediate effect",
		Long: "Change the limits of a client, with immediate effect.\n\n" + command.StaysAsItIs + ` To remove a limit, give an empty
list, such as --types '', the number 0, or --expires none. --own_policies=false
withdraws that permission.`,
		Example: "  adit relay client set shop --types http,https --domains 'shop-*' --monthly_bytes 500GB --over_quota throttle",
		Args:    command.Args(1, 1, "the client's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !flags.given(cmd) {
				return command.Usagef("say what to change, for example `adit relay client set %s --tunnels 5`", args[0])
			}
			c, err := flags.change(cmd, a, args[0])
			var changed *admin.ChangedError
			for try := 1; try < changeTries && errors.As(err, &changed); try++ {
				c, err = flags.change(cmd, a, args[0])
			}
			if err != nil {
				return err
			}
			return a.std.PrintPage(c, func(w io.Writer) { clientPage(w, c) })
		},
	}
	flags.add(cmd)
	command.WithoutDefaults(cmd.Flags())
	return cmd
}
