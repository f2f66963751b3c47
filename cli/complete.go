package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"adit/internal/natural"
)

// completeTime is how long a person who presses Tab waits at most.
const completeTime = 2 * time.Second

// complete tells the shells what an argument of each command can be: a tunnel, a
// file, or nothing that could be listed. Without it they offer files everywhere.
func (e *Env) complete(cmd *cobra.Command) {
	switch {
	case cmd.ValidArgsFunction != nil || strings.Contains(cmd.Use, "FILE"):
	case strings.HasSuffix(cmd.Use, " TUNNEL"):
		cmd.ValidArgsFunction = e.completeTunnel
	default:
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, child := range cmd.Commands() {
		e.complete(child)
	}
}

// completeTunnel lists the daemon's tunnels: by name where that says which, else
// by id. With no daemon there is nothing to list.
func (e *Env) completeTunnel(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, completeTime)
	defer cancel()
	c, err := e.client(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := c.Tunnels(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := map[string]int{}
	for _, t := range all {
		names[t.Name]++
	}
	var list []cobra.Completion
	for _, t := range all {
		name := t.Name
		if names[name] > 1 || name == "" || strings.ContainsAny(name, " \t\n") || name != printable(name) {
			name = t.ID
		}
		if strings.HasPrefix(name, begun) {
			list = append(list, cobra.CompletionWithDesc(name, printable(t.PublicURL)))
		}
	}
	slices.SortFunc(list, natural.Compare)
	return list, cobra.ShellCompDirectiveNoFileComp
}
