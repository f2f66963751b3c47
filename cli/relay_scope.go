package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"adit/cli/command"
	"adit/cli/localtime"
	"adit/internal/bytesize"
	"adit/internal/visible"
	"adit/tunnel/relay/console"
)

// scopeFlags are the flags of what a client may have.
type scopeFlags struct {
	scope                        console.Scope
	expires                      string
	bandwidth, monthly, throttle string
}

func (s *scopeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&s.scope.Types, "types", nil, "tunnel types, as http,https (default all)")
	f.StringSliceVar(&s.scope.Domains, "domains", nil, "names and patterns, as shop,shop-*,*.shop.example (default all)")
	f.StringSliceVar(&s.scope.Ports, "ports", nil, "ports and ranges, as 20000-20010,25565 (default all)")
	f.IntVar(&s.scope.Tunnels, "tunnels", 0, "tunnels at once (default not bounded)")
	f.StringVar(&s.expires, "expires", "", "when it ends: a time as 2027-01-31T00:00:00Z, a date, or from now as 720h; none lets it last")
	f.StringVar(&s.bandwidth, "bandwidth", "", "bytes a second in each direction, as 10MB (default not bounded)")
	f.StringVar(&s.monthly, "monthly_bytes", "", "bytes of visitors a month, as 1TB (default not bounded)")
	f.StringVar(&s.scope.OverQuota, "over_quota", "", "what happens beyond monthly_bytes: warn, throttle or stop (default warn)")
	f.StringVar(&s.throttle, "throttle_bandwidth", "", "bytes a second when throttled (default 131072)")
	f.BoolVar(&s.scope.OwnPolicies, "own_policies", false, "its agents may set the policies of their tunnels")
	f.BoolVar(&s.scope.UnprovedDomains, "unproved_domains", false, "it may have names of its own without a DNS record that proves them")
}

// given reports whether anything was said.
func (s *scopeFlags) given(cmd *cobra.Command) (any bool) {
	cmd.Flags().Visit(func(f *pflag.Flag) { any = any || cmd.LocalNonPersistentFlags().Lookup(f.Name) != nil })
	return any
}

// over writes what was said on the command line over a scope.
func (s *scopeFlags) over(cmd *cobra.Command, to *console.Scope) error {
	f := cmd.Flags()
	for name, set := range map[string]func(){
		"types":            func() { to.Types = s.scope.Types },
		"domains":          func() { to.Domains = s.scope.Domains },
		"ports":            func() { to.Ports = s.scope.Ports },
		"tunnels":          func() { to.Tunnels = s.scope.Tunnels },
		"over_quota":       func() { to.OverQuota = s.scope.OverQuota },
		"own_policies":     func() { to.OwnPolicies = s.scope.OwnPolicies },
		"unproved_domains": func() { to.UnprovedDomains = s.scope.UnprovedDomains },
	} {
		if f.Changed(name) {
			set()
		}
	}
	for _, v := range []struct {
		name, text string
		to         *int64
	}{{"bandwidth", s.bandwidth, &to.Bandwidth}, {"monthly_bytes", s.monthly, &to.Monthly}, {"throttle_bandwidth", s.throttle, &to.Throttle}} {
		if !f.Changed(v.name) {
			continue
		}
		n, err := parseSize(v.text)
		if err != nil {
			return fmt.Errorf("--%s: %w", v.name, err)
		}
		*v.to = n
	}
	if !f.Changed("expires") {
		return nil
	}
	at, err := parseWhen(s.expires, time.Now())
	if err != nil {
		return fmt.Errorf("--expires: %w", err)
	}
	if !at.IsZero() && !at.After(time.Now()) {
		return fmt.Errorf("--expires: %s has passed; `adit relay client revoke` ends a client now", s.expires)
	}
	to.Expires = at
	return nil
}

// parseSize reads a number of bytes: 1500, 10kB, 1.5GB, 4MiB.
func parseSize(text string) (int64, error) {
	number := strings.TrimRight(strings.TrimSpace(text), "BbKkMmGgTtIi ")
	unit := strings.ToUpper(strings.TrimSpace(strings.TrimSpace(text)[len(number):]))
	units := map[string]float64{"": 1, "B": 1}
	for i, letter := range []string{"K", "M", "G", "T"} {
		decimal, binary := 1.0, 1.0
		for range i + 1 {
			decimal *= 1000
			binary *= 1024
		}
		units[letter], units[letter+"B"], units[letter+"IB"] = decimal, decimal, binary
	}
	v, err := strconv.ParseFloat(number, 64)
	factor, ok := units[unit]
	if err != nil || !ok || math.IsNaN(v) || v < 0 || v*factor > 1<<62 {
		return 0, fmt.Errorf("%q is not a number of bytes, as 1500, 10MB or 4MiB", text)
	}
	return int64(v * factor), nil
}

// parseWhen reads a time, a date, or how long from now; none is the zero time.
func parseWhen(text string, now time.Time) (time.Time, error) {
	if text == "none" || text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time as 2027-01-31T00:00:00Z, a date as 2027-01-31, or a duration as 720h", text)
}

// changeTries is how often a client is read and changed again, if somebody else
// changes it in between.
const changeTries = 5

// change writes what was said on the command line over what a client may have, and
// leaves the rest of it as it is, also where somebody else has just set it.
func (s *scopeFlags) change(cmd *cobra.Command, a *relayAdmin, name string) (console.Client, error) {
	var c console.Client
	etag, err := a.replace(cmd.Context(), "", http.MethodGet, clientPath(name), nil, &c)
	if err != nil {
		return c, err
	}
	if err := s.over(cmd, &c.Scope); err != nil {
		return c, err
	}
	in := map[string]console.Scope{"scope": c.Scope}
	_, err = a.replace(cmd.Context(), etag, http.MethodPatch, clientPath(name), in, &c)
	return c, err
}

func relayClientSetCommand(env *Env, a *relayAdmin) *cobra.Command {
	var flags scopeFlags
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change what a client may have; it holds at once",
		Long: "Change what a client may have; it holds at once.\n\n" + command.StaysAsItIs + ` A bound is lifted by an empty list, as
--types '', by the number 0, and by --expires none. --own_policies=false takes
that leave back.`,
		Example: "  adit relay client set shop --types http,https --domains 'shop-*' --monthly_bytes 500GB --over_quota throttle",
		Args:    command.Args(1, 1, "the client's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !flags.given(cmd) {
				return command.Usagef("say what to change, as in `adit relay client set %s --tunnels 5`", args[0])
			}
			c, err := flags.change(cmd, a, args[0])
			var changed *changedError
			for try := 1; try < changeTries && errors.As(err, &changed); try++ {
				c, err = flags.change(cmd, a, args[0])
			}
			if err != nil {
				return err
			}
			return env.std.PrintPage(c, func(w io.Writer) { clientPage(w, c) })
		},
	}
	flags.add(cmd)
	command.WithoutDefaults(cmd.Flags())
	return cmd
}

func relayClientShowCommand(env *Env, a *relayAdmin) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show what a client may have, has used, and what its agents reported",
		Example: "  adit relay client show shop",
		Args:    command.Args(1, 1, "the client's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var c console.Client
			if err := a.call(cmd.Context(), http.MethodGet, clientPath(args[0]), nil, &c); err != nil {
				return err
			}
			return env.std.PrintPage(c, func(w io.Writer) { clientPage(w, c) })
		},
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// clientPage is all of a client.
func clientPage(w io.Writer, c console.Client) {
	all := func(list []string) string {
		if len(list) == 0 {
			return "all"
		}
		return strings.Join(list, ", ")
	}
	bound := func(n int64, unit string) string {
		if n == 0 {
			return "not bounded"
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
