package cli

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/internal/paths"
)

func relayCommand(env *Env) *cobra.Command {
	return command.Group("relay", "Run a relay, and look after a running one", `Run a relay, the server that agents connect to, and look after one.

All but start and restore speak to the running relay. They find it by its data
folder; ADIT_RELAY_ADMIN_URL and ADIT_RELAY_ADMIN_TOKEN point them at one
elsewhere.`,
		relayStartCommand(env), relayStatusCommand(env), relayNodesCommand(env), relayClientCommand(env), relayPolicyCommand(env), relayAccessCommand(env),
		relayAuditCommand(env), relaySinkCommand(env), relayDomainsCommand(env), relayReleaseCommand(env), relaySignOutCommand(env),
		relayBackupCommand(env), relayRestoreCommand(env))
}

// dataDirHint is what commands need to find a relay whose data is elsewhere.
func dataDirHint(dir string) string {
	if slices.Contains(relayDataDirs(), dir) {
		return ""
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return fmt.Sprintf(" --data_dir %s", dir)
}

// relayDataDirs are where a relay's data may be.
func relayDataDirs() []string {
	var dirs []string
	for _, state := range paths.States() {
		dirs = append(dirs, filepath.Join(state, "relay"))
	}
	return dirs
}
