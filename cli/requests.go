package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/cli/tunnel"
	"adit/internal/bytesize"
	"adit/internal/visible"
	"adit/localapi/client"
)

func requestsCommand(env *Env) *cobra.Command {
	return command.Group("requests", "Look at what passed through tunnels, and send it again",
		"Look at what passed through tunnels, and send it again. The Web UI shows the\nsame. A flow is a connection through a tcp or tls tunnel, or what one visitor\nsends through a udp tunnel.",
		requestListCommand(env), requestShowCommand(env), requestReplayCommand(env), requestExportCommand(env),
		requestImportCommand(env), requestClearCommand(env))
}

func requestListCommand(env *Env) *cobra.Command {
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
			c, err := env.find.Client(cmd.Context())
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
			return env.std.PrintTable(stdio.ListOf(list), rows, "Nothing was seen yet.")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&of, "tunnel", "", "only of this tunnel (id, name or domain)")
	flags.StringVar(&f.Kind, "kind", "", "http for requests only, flow for flows only")
	flags.StringVar(&f.Method, "method", "", "only with this method")
	flags.StringVar(&f.Status, "status", "", "only with this status, or of a class such as 4xx")
	flags.StringVar(&f.Text, "q", "", "only with this text in host, path, method or visitor")
	flags.IntVar(&f.Limit, "limit", 50, "at most this many")
	return cmd
}

func requestShowCommand(env *Env) *cobra.Command {
	var reveal, curl bool
	cmd := &cobra.Command{
		Use:   "show REQUEST",
		Short: "Show one request and its answer",
		Example: `  adit requests show req_91
  adit requests show req_91 --curl`,
		Args: command.Args(1, 1, "REQUEST (its id)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			d, err := c.Request(cmd.Context(), args[0], reveal)
			if err != nil {
				return noRequest(err)
			}
			if curl && !env.std.JSON {
				env.std.Say("%s", d.Curl)
				return nil
			}
			return env.std.Print(d, func(w io.Writer) { writeRequest(w, d) })
		},
	}
	cmd.Flags().BoolVar(&reveal, "reveal", false, "show headers that hold secrets")
	cmd.Flags().BoolVar(&curl, "curl", false, "print a cURL command that repeats it")
	return cmd
}

func requestReplayCommand(env *Env) *cobra.Command {
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
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			d, err := c.Replay(cmd.Context(), args[0], edit)
			if err != nil {
				return noRequest(err)
			}
			return env.std.Print(d, func(w io.Writer) { writeRequest(w, d) })
		},
	}
	cmd.Flags().StringVar(&method, "method", "", "another method")
	cmd.Flags().StringVar(&path, "path", "", "another path, with its query")
	cmd.Flags().StringVar(&body, "body", "", "another body")
	return cmd
}

// noRequest says where to look for the requests that there are, if err is that
// there is none of an id.
func noRequest(err error) error {
	if !client.IsCode(err, client.ErrorCodeNotFound) {
		return err
	}
	return fmt.Errorf("%s; `adit requests list` shows those there are", daemon.Explain(err))
}

func requestExportCommand(env *Env) *cobra.Command {
	var reveal bool
	cmd := &cobra.Command{
		Use:     "export [FILE]",
		Short:   "Write the requests as an HTTP Archive (HAR 1.2)",
		Example: "  adit requests export traffic.har",
		Args:    command.Args(0, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return c.ExportHAR(cmd.Context(), env.std.Out, client.RequestFilter{}, reveal)
			}
			file := &lateFile{path: args[0]}
			err = c.ExportHAR(cmd.Context(), file, client.RequestFilter{}, reveal)
			if err = errors.Join(err, file.Close()); err != nil {
				return err
			}
			if env.std.JSON {
				return env.std.Print(map[string]any{"file": args[0], "bytes": file.size}, nil)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&reveal, "reveal", false, "with headers that hold secrets")
	return cmd
}

// lateFile is a file that is made, or emptied, by the first that is written to it:
// a refusal leaves what is there. What passed is often secret: a new one is for
// its owner's eyes.
type lateFile struct {
	path string
	file *os.File
	size int64
}

func (f *lateFile) Write(b []byte) (int, error) {
	if f.file == nil {
		file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return 0, err
		}
		f.file = file
	}
	n, err := f.file.Write(b)
	f.size += int64(n)
	return n, err
}

func (f *lateFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// maxArchive is the largest archive that the local API takes in.
const maxArchive = 1 << 20

func requestImportCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:     "import FILE",
		Short:   "Take the entries of an HTTP Archive in, to look at and to replay",
		Example: "  adit requests import traffic.har",
		Args:    command.Args(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("read the archive: %w", err)
			}
			defer file.Close()
			archive, err := io.ReadAll(io.LimitReader(file, maxArchive+1))
			if err != nil {
				return fmt.Errorf("read the archive: %w", err)
			}
			if len(archive) > maxArchive {
				return fmt.Errorf("%s is over 1 MiB; take some of its entries out", args[0])
			}
			if !json.Valid(archive) {
				return fmt.Errorf("%s is not an HTTP Archive: it is no JSON", args[0])
			}
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			added, err := c.ImportHAR(cmd.Context(), archive)
			if err != nil {
				return err
			}
			return env.std.Print(client.HARImport{Added: added}, func(w io.Writer) { fmt.Fprintf(w, "Added %d.\n", added) })
		},
	}
}

func requestClearCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:     "clear",
		Short:   "Forget everything that was seen",
		Example: "  adit requests clear",
		Args:    command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			if err := c.ClearRequests(cmd.Context()); err != nil {
				return err
			}
			if env.std.JSON {
				return env.std.Print(map[string]any{"cleared": true}, nil)
			}
			return nil
		},
	}
}

// flowText says of a flow whose it is, where that is known, and what passed.
func flowText(r client.RequestSummary) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s in, %s out", visitorText(r.Client, r.Visitor), bytesize.Text(r.BytesIn), bytesize.Text(r.BytesOut)))
}

func writeRequest(w io.Writer, d client.RequestDetail) {
	of := localtime.Text(d.Time) + ", " + d.TunnelName
	if who := visitorText(d.Client, d.Visitor); who != "" {
		of += ", " + who
	}
	fmt.Fprintln(w, visible.Text(of))
	if d.TunnelPath != "" {
		fmt.Fprintf(w, "by the tunnel's path %s\n", visible.Text(d.TunnelPath))
	}
	if d.Error != "" {
		fmt.Fprintf(w, "%s\n", visible.Text(d.Error))
	}
	if d.Kind == "flow" {
		fmt.Fprintf(w, "%s, %s in, %s out, %.1f ms\n", d.State, bytesize.Text(d.BytesIn), bytesize.Text(d.BytesOut), d.DurationMillis)
	}
	for _, m := range []*client.Message{d.Request, d.Response} {
		if m == nil {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", visible.Text(m.Line))
		for _, h := range m.Headers {
			value := h.Value
			if h.Redacted {
				value = "(hidden; --reveal shows it)"
			}
			fmt.Fprintf(w, "%s: %s\n", visible.Text(h.Name), visible.Text(value))
		}
		switch {
		case m.Body.Text != "":
			fmt.Fprintf(w, "\n%s\n", visible.Lines(m.Body.Text))
		case m.Body.Size > 0:
			fmt.Fprintf(w, "\n(%s that are no text)\n", bytesize.Text(m.Body.Size))
		}
		if m.Body.Truncated {
			fmt.Fprintf(w, "(cut; %s in all)\n", bytesize.Text(m.Body.Size))
		}
	}
	writeMessages(w, d)
}

// writeMessages prints what was said over a WebSocket, oldest first.
func writeMessages(w io.Writer, d client.RequestDetail) {
	if len(d.Messages)+d.MessagesMissed > 0 {
		fmt.Fprintln(w)
	}
	if d.MessagesMissed > 0 {
		fmt.Fprintf(w, "(%d messages before are not kept)\n", d.MessagesMissed)
	}
	for _, m := range d.Messages {
		arrow := "<-" // as the visitor sees it
		if m.From == "visitor" {
			arrow = "->"
		}
		text := visible.Lines(m.Text)
		switch {
		case m.Type == "close":
			text = strings.TrimSpace("(close) " + text)
		case m.Unread:
			text = fmt.Sprintf("(%s, compressed in a way that cannot be undone)", bytesize.Text(m.Size))
		case m.Base64 != "":
			text = fmt.Sprintf("(%s that are no text)", bytesize.Text(m.Size))
		}
		if m.Truncated && !m.Unread {
			text += fmt.Sprintf(" (cut; %s in all)", bytesize.Text(m.Size))
		}
		fmt.Fprintf(w, "%s %s %s\n", localtime.Clock(m.Time), arrow, text)
	}
}

// visitorText says who came: of a private tunnel its client's name, and where from.
func visitorText(client, visitor string) string { return strings.TrimSpace(client + " " + visitor) }
