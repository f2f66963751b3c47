// Package agent contains the commands that show the state of the agent and its daemon and that
// manage its session: token, status, endpoints, settings, log and diagnosis. Commands on tunnels
// are in package tunnel.
package agent

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/internal/span"
	"adit/internal/visible"
	"adit/localapi/client"
)

// StatusCommand is adit status.
func StatusCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show whether this machine is connected, and if not, why",
		Example: `  adit status
  adit status --json | jq -r .state`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			st, err := c.Status(cmd.Context())
			if err != nil {
				return err
			}
			return std.PrintPage(st, func(w io.Writer) { writeStatus(w, st) })
		},
	}
}

func roundTrip(ms float64) string { return span.Text(time.Duration(ms * float64(time.Millisecond))) }

// RefusedForNow reports whether the relay may accept the token again later, so that no new one is
// needed.
func RefusedForNow(st client.Status) bool {
	return st.State == "rejected" && strings.Contains(st.LastError, forNow)
}

// forNow describes a token that the relay may accept again later, such as that of a client whose
// time has ended and whose operator may extend it: no new one is needed.
const forNow = "refuses the token for now"

func writeStatus(w io.Writer, st client.Status) {
	fmt.Fprintf(w, "State\t%s\n", StateText(st))
	if st.LastError != "" {
		fmt.Fprintf(w, "Reason\t%s\n", visible.Text(st.LastError))
	}
	if st.Relay != "" {
		fmt.Fprintf(w, "Relay\t%s\n", visible.Text(st.Relay))
	}
	if st.ClientName != "" {
		fmt.Fprintf(w, "Client\t%s\n", visible.Text(st.ClientName))
	}
	fmt.Fprintf(w, "Endpoints\t%d\n", st.EndpointCount)
	partOf := ""
	if st.RunBy != "" {
		partOf = " (" + visible.Text(st.RunBy) + ", and ends with it)"
	}
	fmt.Fprintf(w, "Daemon\t%s, %s/%s, process %d%s, since %s\n", st.Version, st.OS, st.Arch, st.PID, partOf, localtime.Text(st.StartedAt))
	switch {
	case RefusedForNow(st):
		fmt.Fprintf(w, "Next\task the relay's operator; adit keeps trying\n")
	case !st.Configured || st.State == "rejected":
		fmt.Fprintf(w, "Next\tadit login TOKEN\n")
	case st.State == "paused":
		fmt.Fprintf(w, "Next\tadit resume\n")
	}
}

// StateText returns the state with its details.
func StateText(st client.Status) string {
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

// PauseCommand is adit pause.
func PauseCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return sessionCommand(std, find, "pause", "Close the session until you resume it", (*client.Client).Pause)
}

// ResumeCommand is adit resume.
func ResumeCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return sessionCommand(std, find, "resume", "Connect again after a pause", (*client.Client).Resume)
}

// ReconnectCommand is adit reconnect.
func ReconnectCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return sessionCommand(std, find, "reconnect", "Drop the session and connect again immediately", (*client.Client).Reconnect)
}

func sessionCommand(std *stdio.Streams, find *daemon.Finder, name, short string, do func(*client.Client, context.Context) (client.Status, error)) *cobra.Command {
	return &cobra.Command{
		Use: name, Short: short, Example: "  adit " + name, Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			st, err := daemon.Patiently(cmd.Context(), func() (client.Status, error) { return do(c, cmd.Context()) })
			if err != nil {
				return err
			}
			return std.PrintPage(st, func(w io.Writer) { writeStatus(w, st) })
		},
	}
}

// StateReason returns the state with the reason why it is not connected.
func StateReason(st client.Status) string {
	if st.LastError != "" && !st.Connected {
		return st.State + ": " + visible.Text(st.LastError)
	}
	return st.State
}
