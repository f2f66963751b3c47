package relay

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/localtime"
	"adit/internal/bytesize"
	"adit/internal/visible"
	"adit/tunnel/relay/console"
)

func clientShowCommand(a *running) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a client: its limits, its usage, and what its agents reported",
		Example: "  adit relay client show shop",
		Args:    command.Args(1, 1, "the client's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var c console.Client
			if err := a.Call(cmd.Context(), http.MethodGet, clientPath(args[0]), nil, &c); err != nil {
				return err
			}
			return a.std.PrintPage(c, func(w io.Writer) { clientPage(w, c) })
		},
	}
}

func clientPath(name string) string { return "/api/v1/clients/" + url.PathEscape(name) }

// clientPage writes all details of a client.
func clientPage(w io.Writer, c console.Client) {
	all := func(list []string) string {
		if len(list) == 0 {
			return "all"
		}
		return strings.Join(list, ", ")
	}
	bound := func(n int64, unit string) string {
		if n == 0 {
			return "unlimited"
		}
		return "at most " + strconv.FormatInt(n, 10) + unit
	}
	s := c.Scope
	fmt.Fprintf(w, "%s\t%s, %s\n", c.Name, c.State, c.ClientID)
	fmt.Fprintf(w, "tokens\t%d\n", len(c.Tokens))
	fmt.Fprintf(w, "types\t%s\n", all(s.Types))
	fmt.Fprintf(w, "domains\t%s\n", all(s.Domains))
	fmt.Fprintf(w, "ports\t%s\n", all(s.Ports))
	fmt.Fprintf(w, "tunnels\t%d now, %s\n", c.Tunnels, bound(int64(s.Tunnels), ""))
	if !s.Expires.IsZero() {
		fmt.Fprintf(w, "expires\t%s\n", localtime.Minute(s.Expires))
	}
	fmt.Fprintf(w, "bandwidth\t%s\n", bound(s.Bandwidth, " bytes a second"))
	fmt.Fprintf(w, "traffic of %s\t%s in, %s out, %s: %s\n", c.Usage.Month, bytesize.Text(c.Usage.BytesIn), bytesize.Text(c.Usage.BytesOut), bound(c.Usage.Limit, " bytes"), c.Usage.State)
	fmt.Fprintf(w, "own policies\t%s\n", yesNo(s.OwnPolicies))
	if c.Seen != nil {
		state := "last seen"
		if c.Seen.Connected {
			state = "connected"
		}
		fmt.Fprintf(w, "%s\t%s, %s by %s, version %s on %s/%s, at node %s\n", state, localtime.Text(c.Seen.At),
			c.Seen.Address, c.Seen.Transport, visible.Text(c.Seen.Version), visible.Text(c.Seen.OS), visible.Text(c.Seen.Arch), c.Seen.Node)
	}
	if c.Proof != nil {
		fmt.Fprintf(w, "own domains\tproved by the TXT record %s with the value %s\n", c.Proof.Name, c.Proof.Value)
	}
	for _, e := range c.Errors {
		fmt.Fprintf(w, "error\t%s %s\n", localtime.Text(e.Time), visible.Text(e.Message))
	}
}
