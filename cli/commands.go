package cli

import (
	"github.com/spf13/cobra"

	"adit/cli/agent"
	"adit/cli/daemon"
	"adit/cli/dev"
	"adit/cli/machine"
	"adit/cli/man"
	"adit/cli/publish"
	"adit/cli/relay"
	"adit/cli/requests"
	"adit/cli/stdio"
	"adit/cli/tunnel"
	"adit/cli/visit"
)

// part is a section of adit's help.
type part struct {
	id, title string
	commands  []*cobra.Command
}

// parts returns all of adit's commands, in the order in which a newcomer needs them.
func (e *Env) parts(std *stdio.Streams, find *daemon.Finder) []part {
	return []part{
		{"begin", "Get started:", []*cobra.Command{
			dev.Command(std),
			machine.StartCommand(e.Daemon),
			agent.LoginCommand(std, find),
			agent.LogoutCommand(std, find),
		}},
		{"publish", "Publish a service, or visit a private one:", []*cobra.Command{
			publish.Command(std, find, "http"),
			publish.Command(std, find, "https"),
			publish.Command(std, find, "tls"),
			publish.Command(std, find, "tcp"),
			publish.Command(std, find, "udp"),
			publish.FilesCommand(std, find),
			tunnel.Command(std, find),
			agent.EndpointsCommand(std, find),
			visit.Command(std, find),
		}},
		{"look", "See what is happening:", []*cobra.Command{
			agent.StatusCommand(std, find),
			agent.OpenCommand(std, find, e.OpenBrowser),
			requests.Command(std, find),
			agent.LogsCommand(std, find),
			agent.DoctorCommand(std, find),
			agent.SpeedCommand(std, find),
		}},
		{"session", "Control the session:", []*cobra.Command{
			agent.PauseCommand(std, find),
			agent.ResumeCommand(std, find),
			agent.ReconnectCommand(std, find),
		}},
		{"machine", "Manage this machine:", []*cobra.Command{
			machine.ServiceCommand(std),
			machine.TrayCommand(std, find, e.OpenBrowser),
			agent.ConfigCommand(std, find),
			machine.UpdateCommand(std, e.Getenv),
			versionCommand(std),
			man.Command(),
		}},
		{"relay", "Operate a relay:", []*cobra.Command{
			relay.Command(std, e.Getenv),
		}},
	}
}
