package paths

import "path/filepath"

func serviceFolders() Folders {
	const dir = "/Library/Application Support/Adit"
	return Folders{Config: dir, State: dir}
}

func personFolders(home string, _ func(string) string) Folders {
	dir := filepath.Join(home, "Library", "Application Support", "Adit")
	return Folders{Config: dir, State: dir}
}

func publicFolder() string { return serviceFolders().State }
