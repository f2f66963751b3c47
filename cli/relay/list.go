package relay

import (
	"net/http"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/stdio"
	"adit/cli/table"
)

// listing says how to request and show a list from the relay.
type listing[T any] struct {
	use, short, long string
	example          string
	path             string
	heading          string // as table.New takes it
	narrower         []table.Step
	row              func(item T) []any
	none             string // said instead of an empty one
}

func (l listing[T]) command(a *running) *cobra.Command {
	return &cobra.Command{
		Use:     l.use,
		Short:   l.short,
		Long:    l.long,
		Example: l.example,
		Args:    command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list stdio.List[T]
			if err := a.Call(cmd.Context(), http.MethodGet, l.path, nil, &list); err != nil {
				return err
			}
			rows := table.New(l.heading, l.narrower...)
			for _, item := range list.Items {
				rows.Add(l.row(item)...)
			}
			return a.std.PrintTable(list, rows, l.none)
		},
	}
}

// removal says how to remove one thing at the relay.
type removal struct {
	use, short    string
	example       string
	argument, key string // what it is called: in an error, and in JSON
	path          func(name string) string
	said          string // with the name for %s
}

func (r removal) command(a *running) *cobra.Command {
	return &cobra.Command{
		Use:     r.use,
		Short:   r.short,
		Example: r.example,
		Args:    command.Args(1, 1, r.argument),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.Call(cmd.Context(), http.MethodDelete, r.path(args[0]), nil, nil); err != nil {
				return err
			}
			if a.std.JSON {
				return a.std.Print(map[string]any{r.key: args[0], "deleted": true}, nil)
			}
			a.std.Say(r.said, args[0])
			return nil
		},
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
