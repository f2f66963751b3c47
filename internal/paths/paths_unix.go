//go:build !windows && !darwin

package paths

import "path/filepath"

func serviceFolders() Folders {
	return Folders{Config: "/etc/adit", State: "/var/lib/adit"}
}

// personFolders follows the XDG base directory specification.
func personFolders(home string, getenv func(string) string) Folders {
	return Folders{
		Config: filepath.Join(absolute(getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "adit"),
		State:  filepath.Join(absolute(getenv("XDG_STATE_HOME"), filepath.Join(home, ".local", "state")), "adit"),
	}
}

func publicFolder() string { return "/run/adit" }
