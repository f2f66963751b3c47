package relay

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"adit/internal/paths"
	"adit/tunnel/relay/config"
)

// loadConfig reads the named file or, if there is one, the file in the configuration folder, and
// returns which one that was.
func loadConfig(file string) (_ config.Config, from string, err error) {
	if file != "" {
		cfg, err := withDataDir(config.Load(file))
		return cfg, file, err
	}
	for _, dir := range configDirs() {
		file := filepath.Join(dir, "relay.toml")
		cfg, err := config.Load(file)
		if !errors.Is(err, fs.ErrNotExist) {
			cfg, err = withDataDir(cfg, err)
			return cfg, file, err
		}
	}
	cfg, err := withDataDir(config.Defaults(), nil)
	return cfg, "", err
}

func configDirs() []string {
	var dirs []string
	if p, err := paths.Person(); err == nil {
		dirs = append(dirs, p.Config)
	}
	return append(dirs, paths.Service().Config)
}

// withDataDir puts the relay's data next to adit's state, unless configured otherwise.
func withDataDir(cfg config.Config, err error) (config.Config, error) {
	if err == nil && cfg.DataDir == "" {
		if p, err := paths.Person(); err == nil {
			cfg.DataDir = filepath.Join(p.State, "relay")
		}
	}
	return cfg, err
}

// dataFolders returns where the data of the running relay that flags name may be.
func dataFolders(dataDir, file string) ([]string, error) {
	dirs := dataDirs()
	if dataDir != "" {
		dirs = []string{dataDir}
	} else if file != "" {
		cfg, _, err := loadConfig(file)
		if err != nil {
			return nil, err
		}
		dirs = []string{cfg.DataDir}
	} else if cfg, _, err := loadConfig(""); err == nil && cfg.DataDir != "" {
		dirs = append([]string{cfg.DataDir}, dirs...)
	}
	return unique(dirs), nil
}

// unique returns dirs without duplicates, in order.
func unique(dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		if dir = filepath.Clean(dir); !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// dataDirHint returns what commands need to find a relay whose data is elsewhere.
func dataDirHint(dir string) string {
	if slices.Contains(dataDirs(), dir) {
		return ""
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return fmt.Sprintf(" --data_dir %s", dir)
}

// dataDirs returns where a relay's data may be.
func dataDirs() []string {
	var dirs []string
	for _, state := range paths.States() {
		dirs = append(dirs, filepath.Join(state, "relay"))
	}
	return dirs
}
