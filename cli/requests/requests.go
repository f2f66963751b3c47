// Package requests contains the commands that show the recorded requests of tunnels, replay them,
// and export them as an archive. It also writes the one-line summaries that the short forms show.
package requests

import (
	"encoding/base64"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/cli/tunnel"
	"adit/localapi/client"
)

// Command is adit requests.
func Command(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return command.Group("requests", "Inspect the traffic of tunnels, and replay requests",
		"Inspect the traffic of tunnels, and replay requests. The Web UI shows the same.\nA flow is a connection through a tcp or tls tunnel, or one visitor's packets\nthrough a udp tunnel.",
		listCommand(std, find), showCommand(std, find), replayCommand(std, find), exportCommand(std, find),
		importCommand(std, find), clearCommand(std, find))
}

func listCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	var f client.RequestFilter
	var of string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List requests and flows, newest first",
		Example: `  adit requests list --status 5xx
  adit requests list --tunnel shop --q /orders --limit 20`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckLimit(f.Limit); err != nil {
				return err
			}
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			if of != "" {
				if f.TunnelID, err = tunnel.Find(cmd.Context(), c, of); err != nil {
					return err
				}
			}
			by, err := tunnel.ByID(cmd.Context(), c)
			if err != nil {
				return err
			}
			list, err := c.Requests(cmd.Context(), f)
			if err != nil {
				return err
			}
			rows := table.New("ID|TIME|TUNNEL|STATUS|REQUEST|MS",
				table.Shorten("TIME", localtime.WithoutYear), table.Squeeze("TUNNEL", 12), table.Squeeze("REQUEST", 24))
			for _, r := range list {
				what, status := asked(r, by[r.TunnelID]), fmt.Sprint(r.Status)
				if r.Kind == "flow" {
					what = flowText(r)
				}
				if r.Status == 0 {
					status = r.State
				}
				rows.Add(r.ID, localtime.Text(r.Time), r.TunnelName+r.TunnelPath, status, what, fmt.Sprintf("%.1f", r.DurationMillis))
			}
			return std.PrintTable(stdio.ListOf(list), rows, "Nothing was seen yet.")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&of, "tunnel", "", "only of this tunnel (id, name or domain)")
	flags.StringVar(&f.Kind, "kind", "", "http for only requests, flow for only flows")
	flags.StringVar(&f.Method, "method", "", "only with this method")
	flags.StringVar(&f.Status, "status", "", "only with this status, or a class such as 4xx")
	flags.StringVar(&f.Text, "q", "", "only with this text in the method, host, path, status, visitor or tunnel")
	flags.IntVar(&f.Limit, "limit", 50, "at most this many")
	return cmd
}

func showCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	var reveal, curl bool
	cmd := &cobra.Command{
		Use:   "show REQUEST",
		Short: "Show one request and its response",
		Example: `  adit requests show req_91
  adit requests show req_91 --curl`,
		Args: command.Args(1, 1, "REQUEST (its id)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			d, err := c.Request(cmd.Context(), args[0], reveal)
			if err != nil {
				return noRequest(err)
			}
			if curl && !std.JSON {
				if d.Curl == "" {
					return fmt.Errorf("%s cannot be repeated with curl: it is not an HTTP request, or it was not recorded completely", args[0])
				}
				std.Say("%s", d.Curl)
				return nil
			}
			return std.Print(d, func(w io.Writer) { writeRequest(w, d) })
		},
	}
	cmd.Flags().BoolVar(&reveal, "reveal", false, "show headers that hold secrets")
	cmd.Flags().BoolVar(&curl, "curl", false, "print a curl command that repeats it")
	return cmd
}

func replayCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	var method, path, body string
	cmd := &cobra.Command{
		Use:   "replay REQUEST",
		Short: "Send a request to the local service again",
		Example: `  adit requests replay req_91
  adit requests replay req_91 --path '/orders?dry=1'`,
		Args: command.Args(1, 1, "REQUEST (its id)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var edit client.Replay
			for name, field := range map[string]**string{"method": &edit.Method, "path": &edit.Path, "body": &edit.Body} {
				if cmd.Flags().Changed(name) {
					*field = map[string]*string{"method": &method, "path": &path, "body": &body}[name]
				}
			}
			if !utf8.ValidString(body) { // JSON has no such text
				encoded := base64.StdEncoding.EncodeToString([]byte(body))
				edit.Body, edit.BodyBase64 = nil, &encoded
			}
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			d, err := c.Replay(cmd.Context(), args[0], edit)
			if err != nil {
				return noRequest(err)
			}
			return std.Print(d, func(w io.Writer) { writeRequest(w, d) })
		},
	}
	cmd.Flags().StringVar(&method, "method", "", "use this method instead")
	cmd.Flags().StringVar(&path, "path", "", "use this path and query instead")
	cmd.Flags().StringVar(&body, "body", "", "use this body instead")
	return cmd
}

// noRequest adds where to look for existing requests, if err says that there is none with the given
// id.
func noRequest(err error) error {
	if !client.IsCode(err, client.ErrorCodeNotFound) {
		return err
	}
	return fmt.Errorf("%s; `adit requests list` shows all", daemon.Explain(err))
}

func clearCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return &cobra.Command{
		Use:     "clear",
		Short:   "Delete all recorded requests and flows",
		Example: "  adit requests clear",
		Args:    command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.ClearRequests(cmd.Context()); err != nil {
				return err
			}
			if std.JSON {
				return std.Print(map[string]any{"cleared": true}, nil)
			}
			return nil
		},
	}
}
