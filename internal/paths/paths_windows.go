package paths

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// serviceFolders asks the system, and not the environment, which a person may set
// for what runs as administrator too.
func serviceFolders() Folders {
	data, err := windows.KnownFolderPath(windows.FOLDERID_ProgramData, windows.KF_FLAG_DONT_VERIFY)
	if err != nil {
		data = ""
	}
	dir := filepath.Join(absolute(data, `C:\ProgramData`), "Adit")
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
