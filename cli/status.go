package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/definition"
	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/internal/bytesize"
	"adit/internal/span"
	"adit/internal/visible"
	"adit/localapi/client"
)

func statusCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show whether this machine is connected, and why not",
		Example: `  adit status
  adit status --json | jq -r .state`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			st, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			return env.std.PrintPage(st, func(w io.Writer) { writeStatus(w, st) })
		},
	}
}

func roundTrip(ms float64) string { return span.Text(time.Duration(ms * float64(time.Millisecond))) }

// forNow is said of a token that the relay may take again, as of a client whose time
// has ended, which its operator may give more: a new one is not needed.
const forNow = "refuses the token for now"

func writeStatus(w io.Writer, st client.Status) {
	fmt.Fprintf(w, "State\t%s\n", stateText(st))
	if st.LastError != "" {
		fmt.Fprintf(w, "Reason\t%s\n", visible.Text(st.LastError))
	}
	if st.Relay != "" {
		fmt.Fprintf(w, "Relay\t%s\n", visible.Text(st.Relay))
	}
	fmt.Fprintf(w, "Endpoints\t%d\n", st.EndpointCount)
	partOf := ""
	if st.RunBy != "" {
		partOf = " (" + visible.Text(st.RunBy) + ", and ends with it)"
	}
	fmt.Fprintf(w, "Daemon\t%s, %s/%s, process %d%s, since %s\n", st.Version, st.OS, st.Arch, st.PID, partOf, localtime.Text(st.StartedAt))
	switch {
	case st.State == "rejected" && strings.Contains(st.LastError, forNow):
		fmt.Fprintf(w, "Next\task the relay's operator; adit tries again by itself\n")
	case !st.Configured || st.State == "rejected":
		fmt.Fprintf(w, "Next\tadit login TOKEN\n")
	case st.State == "paused":
		fmt.Fprintf(w, "Next\tadit resume\n")
	}
}

// stateText is the state with what belongs to it.
func stateText(st client.Status) string {
	if !st.Connected {
		return st.State
	}
	text := st.State + " over " + strings.ToUpper(st.Transport)
	if st.RTTMillis > 0 {
		text += ", " + roundTrip(st.RTTMillis)
	}
	if st.ConnectedSince != nil {
		text += ", since " + localtime.Text(*st.ConnectedSince)
	}
	return text
}

func pauseCommand(env *Env) *cobra.Command {
	return sessionCommand(env, "pause", "Close the session and stay away until resumed", (*client.Client).Pause)
}

func resumeCommand(env *Env) *cobra.Command {
	return sessionCommand(env, "resume", "Connect again after a pause", (*client.Client).Resume)
}

func reconnectCommand(env *Env) *cobra.Command {
	return sessionCommand(env, "reconnect", "Drop the session and connect anew, at once", (*client.Client).Reconnect)
}

func sessionCommand(env *Env, name, short string, do func(*client.Client, context.Context) (client.Status, error)) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Example: "  adit " + name, Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			st, err := daemon.Patiently(cmd.Context(), func() (client.Status, error) { return do(c, cmd.Context()) })
			if err != nil {
				return err
			}
			return env.std.PrintPage(st, func(w io.Writer) { writeStatus(w, st) })
		},
	}
}

func endpointsCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "endpoints",
		Short: "List the public addresses that answer now",
		Example: `  adit endpoints
  adit endpoints --json | jq -r '.items[].public_url'`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			items, err := c.Endpoints(cmd.Context())
			if err != nil {
				return err
			}
			var tunnels []client.Tunnel
			if len(items) == 0 {
				if tunnels, err = c.Tunnels(cmd.Context()); err != nil {
					return err
				}
			}
			rows := table.New("NAME|URL|LOCAL|STATE|OPEN|TOTAL|IN|OUT|ERROR",
				table.Shorten("LOCAL", definition.ShortLocal), table.Drop("STATE"), table.Drop("LOCAL"), table.Squeeze("NAME", 12), table.Drop("TOTAL"), table.Drop("IN"), table.Drop("OUT"), table.Drop("OPEN"))
			for _, e := range items {
				rows.Add(e.Name, e.PublicURL, e.Local, e.State, e.Connections.Open, e.Connections.Total, bytesize.Text(e.Bytes.In), bytesize.Text(e.Bytes.Out), e.Error)
			}
			rows.OmitEmpty("ERROR")
			return env.std.PrintTable(stdio.ListOf(items), rows, nothingPublished(tunnels))
		},
	}
}

// nothingPublished says why no public address answers.
func nothingPublished(tunnels []client.Tunnel) string {
	waiting := 0
	for _, t := range tunnels {
		if t.State == client.TunnelStateWaiting || t.State == client.TunnelStateStarting {
			waiting++
		}
	}
	switch {
	case len(tunnels) == 0:
		return "Nothing is published now. Publish something: adit https 3000"
	case waiting > 0:
		return "No public address answers now: tunnels wait for the session with the relay; `adit status` says why."
	}
	return "No public address answers now: all tunnels are stopped or have failed; `adit tunnel list` shows them."
}

func configCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Show the settings in force, and where each comes from",
		Example: `  adit config
  adit config --json | jq '.settings[] | select(.source != "default")'`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			cfg, err := c.Config(cmd.Context())
			if err != nil {
				return err
			}
			return env.std.PrintPage(cfg, func(w io.Writer) {
				note := ""
				if !cfg.ConfigFileExists {
					note = " (not there)"
				}
				fmt.Fprintf(w, "Config file\t%s%s\n", cfg.ConfigFile, note)
				fmt.Fprintf(w, "State folder\t%s\n", cfg.StateDir)
				if cfg.Error != nil {
					fmt.Fprintf(w, "Mistake\t%s\n", mistakeText(*cfg.Error))
				}
				for _, s := range cfg.Settings {
					fmt.Fprintf(w, "%s\t%s\n", s.Key, strings.TrimLeft(settingText(s.Value)+" ("+s.Source+")", " "))
				}
			})
		},
	}
}

// mistakeText says what is wrong with adit.toml, and where.
func mistakeText(e client.ConfigError) string {
	text := visible.Text(e.Message)
	if e.Key != "" {
		text = visible.Text(e.Key) + ": " + text
	}
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	return text
}

// settingText is a setting's value as a person reads it.
func settingText(value any) string {
	list, ok := value.([]any)
	if !ok {
		return visible.Text(fmt.Sprint(value))
	}
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = visible.Text(fmt.Sprint(list[i]))
	}
	return strings.Join(texts, ", ")
}
