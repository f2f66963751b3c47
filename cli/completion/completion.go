// Package completion tells shells the possible values of each command's arguments and flags. It
// asks the daemon which tunnels exist, and waits no longer for the answer than a person would.
package completion

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"adit/cli/daemon"
	"adit/internal/natural"
	"adit/internal/visible"
	"adit/localapi/client"
)

// completeTime is how long a person who presses Tab waits, at most.
const completeTime = 2 * time.Second

// Offer tells shells what an argument of each command can be: a tunnel, a file, or nothing that
// could be listed. Without it, shells would offer files everywhere.
func Offer(cmd *cobra.Command, find *daemon.Finder) {
	switch {
	case cmd.ValidArgsFunction != nil || strings.Contains(cmd.Use, "FILE"):
	case strings.HasSuffix(cmd.Use, " TUNNEL"):
		cmd.ValidArgsFunction = tunnels(find)
	default:
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { offerValue(cmd, f, find) })
	for _, child := range cmd.Commands() {
		Offer(child, find)
	}
}

// flagValues are the possible values of flags by name; a name preceded by a command's applies only
// to that command.
var flagValues = map[string][]cobra.Completion{
	"kind":           {"http", "flow"},
	"level":          {"debug", "info", "warn", "error"},
	"local_scheme":   {"http", "https", "h2c"},
	"mode":           {"standard", "balanced", "private"},
	"over_quota":     {"warn", "throttle", "stop"},
	"proxy_protocol": {"v1", "v2"},
	"type":           {"http", "https", "tls", "tcp", "udp"},

	"files type":           {"http", "https"},
	"start proxy_protocol": {"accept", "require", "off"}, // a relay's own
}

// offerValue is like Offer for the value of a flag.
func offerValue(cmd *cobra.Command, f *pflag.Flag, find *daemon.Finder) {
	if _, known := cmd.GetFlagCompletionFunc(f.Name); known || f.NoOptDefVal != "" { // as those that are on or off
		return
	}
	fits := cobra.NoFileCompletions
	values, listed := flagValues[cmd.Name()+" "+f.Name]
	if !listed {
		values, listed = flagValues[f.Name]
	}
	switch {
	case f.Name == "tunnel":
		fits = tunnels(find)
	case listed:
		fits = cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	case strings.HasSuffix(f.Name, "_dir"):
		fits = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case strings.Contains(f.Usage, "file"), strings.HasPrefix(f.Name, "tls_"):
		return // the shells offer files
	}
	// This fails for a flag that has a function already, or that is not the command's own.
	_ = cmd.RegisterFlagCompletionFunc(f.Name, fits)
}

// tunnels lists the daemon's tunnels: by name if that is unique, else by id. Without a daemon there
// is nothing to list.
func tunnels(find *daemon.Finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && strings.HasSuffix(cmd.Use, " TUNNEL") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return From(cmd, find, func(ctx context.Context, c *client.Client) (list []cobra.Completion, err error) {
			all, err := c.Tunnels(ctx)
			names := map[string]int{}
			for _, t := range all {
				names[t.Name]++
			}
			for _, t := range all {
				name := t.Name
				if names[name] > 1 || name == "" || strings.ContainsAny(name, " \t\n") || name != visible.Text(name) {
					name = t.ID
				}
				if strings.HasPrefix(name, begun) {
					list = append(list, cobra.CompletionWithDesc(name, visible.Text(t.PublicURL)))
				}
			}
			return list, err
		})
	}
}

// From lists what ask gets from the daemon. Without a daemon, or if it does not answer in time,
// there is nothing to list.
func From(cmd *cobra.Command, find *daemon.Finder, ask func(context.Context, *client.Client) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, completeTime)
	defer cancel()
	c, err := find.Client(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := ask(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	slices.SortFunc(list, natural.Compare)
	return list, cobra.ShellCompDirectiveNoFileComp
}
