// Package relay contains the commands for operators of a relay: running one, restoring one from its
// backup, and administering a running one through its admin API.
package relay

import (
	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/stdio"
)

// Command returns adit relay. getenv may say where the admin API is.
func Command(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	return command.Group("relay", "Run a relay, and administer a running one", `Run a relay, the server that agents connect to, and administer it.

All commands except start and restore talk to a running relay. They find it by
its data folder; to reach one elsewhere, set ADIT_RELAY_ADMIN_URL and
ADIT_RELAY_ADMIN_TOKEN.`,
		startCommand(std), statusCommand(std, getenv), nodesCommand(std, getenv), clientCommand(std, getenv), policyCommand(std, getenv), accessCommand(std, getenv),
		auditCommand(std, getenv), sinkCommand(std, getenv), domainsCommand(std, getenv), releaseCommand(std, getenv), signOutCommand(std, getenv),
		backupCommand(std, getenv), restoreCommand(std))
}
