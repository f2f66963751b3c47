// Package paths knows adit's two folders: the one with the files that a person writes, and the one
// in which adit keeps its state.
package paths

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
)

// Environment variables that move the folders.
const (
	EnvConfig = "ADIT_CONFIG_DIR"
	EnvState  = "ADIT_STATE_DIR"
)

// Folders are the two folders of one installation.
type Folders struct {
	Config string // adit.toml; adit only reads it
	State  string // machine-written, readable by the owner alone
}

// Service returns the folders of adit as a service of the operating system. The environment can
// override them.
func Service() Folders { return override(serviceFolders()) }

// Person returns the folders of whoever runs the process. The environment can override them.
func Person() (Folders, error) {
	moved := override(Folders{})
	if moved.Config != "" && moved.State != "" {
		return moved, nil
	}
	home, err := homeDir()
	if err != nil {
		return Folders{}, fmt.Errorf("find the home folder: %w; set %s and %s instead", err, EnvConfig, EnvState)
	}
	return override(personFolders(home, os.Getenv)), nil
}

// States returns the state folders in which a running daemon may be found, the most likely first.
func States() []string {
	if dir := os.Getenv(EnvState); dir != "" {
		return []string{dir}
	}
	var dirs []string
	if p, err := Person(); err == nil {
		dirs = append(dirs, p.State)
	}
	return append(dirs, serviceFolders().State, Public())
}

// Public returns the folder in which a service publishes where it answers; its state folder may be
// closed to most people.
func Public() string { return publicFolder() }

func override(f Folders) Folders {
	if dir := os.Getenv(EnvConfig); dir != "" {
		f.Config = dir
	}
	if dir := os.Getenv(EnvState); dir != "" {
		f.State = dir
	}
	return f
}

// homeDir also works where HOME is not set, as under a service manager.
func homeDir() (string, error) {
	if dir, err := os.UserHomeDir(); err == nil {
		return dir, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	if u.HomeDir == "" {
		return "", fmt.Errorf("user %s has none", u.Username)
	}
	return u.HomeDir, nil
}

// absolute returns dir if it is an absolute path, else other: the rule of the
// XDG base directories, and sound elsewhere.
func absolute(dir, other string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return other
}
