//go:build unix

package link

import "github.com/pion/logging"

// quiet is a logger factory for pion that writes nothing.
type quiet struct{}

func (quiet) NewLogger(string) logging.LeveledLogger {
	return &logging.DefaultLeveledLogger{}
}
