package relay

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"adit/cli/command"
	"adit/tunnel/relay/console"
)

// scopeFlags are the flags for a client's scope.
type scopeFlags struct {
	scope                        console.Scope
	expires                      string
	bandwidth, monthly, throttle string
}

func (s *scopeFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&s.scope.Types, "types", nil, "allowed tunnel types, such as http,https (default all)")
	f.StringSliceVar(&s.scope.Domains, "domains", nil, "allowed names and patterns, such as shop,shop-*,*.shop.example (default all)")
	f.StringSliceVar(&s.scope.Ports, "ports", nil, "allowed ports and ranges, such as 20000-20010,25565 (default all)")
	f.IntVar(&s.scope.Tunnels, "tunnels", 0, "number of tunnels (default unlimited)")
	f.StringVar(&s.expires, "expires", "", "when access ends: a time such as 2027-01-31T00:00:00Z, a date, or a duration from now such as 720h; none means never")
	f.StringVar(&s.bandwidth, "bandwidth", "", "bytes per second in each direction, such as 10MB (default unlimited)")
	f.StringVar(&s.monthly, "monthly_bytes", "", "traffic of visitors per month, such as 1TB (default unlimited)")
	f.StringVar(&s.scope.OverQuota, "over_quota", "", "what to do beyond monthly_bytes: warn, throttle or stop (default warn)")
	f.StringVar(&s.throttle, "throttle_bandwidth", "", "bytes per second when throttled (default 131072)")
	f.BoolVar(&s.scope.OwnPolicies, "own_policies", false, "allow its agents to set the policies of their tunnels")
	f.BoolVar(&s.scope.UnprovedDomains, "unproved_domains", false, "allow it names outside the domain without a DNS record that proves them")
}

// given reports whether any of the flags was given.
func (s *scopeFlags) given(cmd *cobra.Command) (any bool) {
	cmd.Flags().Visit(func(f *pflag.Flag) { any = any || cmd.LocalNonPersistentFlags().Lookup(f.Name) != nil })
	return any
}

// over applies the given flags to a scope.
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
			return command.Usagef("--%s: %v", v.name, err)
		}
		*v.to = n
	}
	if !f.Changed("expires") {
		return nil
	}
	at, err := parseWhen(s.expires, time.Now())
	if err != nil {
		return command.Usagef("--expires: %v", err)
	}
	if !at.IsZero() && !at.After(time.Now()) {
		return fmt.Errorf("--expires: %s has passed; to end access now, use `adit relay client revoke`", s.expires)
	}
	to.Expires = at
	return nil
}
