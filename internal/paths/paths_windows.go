package paths

import (
	"os"
	"path/filepath"
)

func serviceFolders() Folders {
	dir := filepath.Join(absolute(os.Getenv("ProgramData"), `C:\ProgramData`), "Adit")
	return Folders{Config: dir, State: dir}
}

// personFolders keeps what a person writes where it roams with the account, and
// the state, which belongs to this machine, where it does not.
func personFolders(home string, getenv func(string) string) Folders {
	return Folders{
		Config: filepath.Join(absolute(getenv("AppData"), filepath.Join(home, "AppData", "Roaming")), "Adit"),
		State:  filepath.Join(absolute(getenv("LocalAppData"), filepath.Join(home, "AppData", "Local")), "Adit"),
	}
}

func publicFolder() string { return filepath.Join(serviceFolders().State, "run") }
