package cli

import (
	"github.com/spf13/cobra"

	"adit/cli/man"
	"adit/cli/tunnel"
)

// part is a part of adit's help.
type part struct {
	id, title string
	commands  []func(*Env) *cobra.Command
}

// parts are all of adit, in the order of a newcomer's way through it.
var parts = []part{
	{"begin", "To begin:", []func(*Env) *cobra.Command{
		devCommand,
		startCommand,
		loginCommand,
		logoutCommand,
	}},
	{"publish", "To publish a service, or visit a private one:", []func(*Env) *cobra.Command{
		shortCommand("http"),
		shortCommand("https"),
		shortCommand("tls"),
		shortCommand("tcp"),
		shortCommand("udp"),
		filesCommand,
		func(e *Env) *cobra.Command { return tunnel.Command(e.std, e.find) },
		endpointsCommand,
		visitCommand,
	}},
	{"look", "To see what happens:", []func(*Env) *cobra.Command{
		statusCommand,
		openCommand,
		requestsCommand,
		logsCommand,
		doctorCommand,
		speedCommand,
	}},
	{"session", "To have the session otherwise:", []func(*Env) *cobra.Command{
		pauseCommand,
		resumeCommand,
		reconnectCommand,
	}},
	{"machine", "On this machine:", []func(*Env) *cobra.Command{
		serviceCommand,
		trayCommand,
		configCommand,
		updateCommand,
		versionCommand,
		func(*Env) *cobra.Command { return man.Command() },
	}},
	{"relay", "For those who run a relay:", []func(*Env) *cobra.Command{
		relayCommand,
	}},
}
