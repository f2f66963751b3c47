package cli

import "github.com/spf13/cobra"

// commands is all of adit, in the order of a newcomer's way through it.
var commands = []func(*Env) *cobra.Command{
	startCommand,
	devCommand,
	loginCommand,
	logoutCommand,
	statusCommand,
	endpointsCommand,
	tunnelCommand,
	shortCommand("http"),
	shortCommand("https"),
	shortCommand("tcp"),
	shortCommand("udp"),
	openCommand,
	pauseCommand,
	resumeCommand,
	reconnectCommand,
	requestsCommand,
	logsCommand,
	configCommand,
	doctorCommand,
	serviceCommand,
	trayCommand,
	relayCommand,
	updateCommand,
	versionCommand,
	manCommand,
}
