package service

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"adit/internal/logfile"
)

// EnvLogFile names the daemon's log file. Our declarations set it if the service manager keeps no
// log, which is everywhere but under systemd.
const EnvLogFile = "ADIT_LOG_FILE"

// Limits of the log: the newest file and four older ones.
const (
	logSize = 5 << 20
	logKeep = 4
	// errorsSize bounds what launchd and the init scripts write next to the log: the daemon's last
	// output from starts that did not get as far as the log.
	errorsSize = 1 << 20
)

// errorsName is the file next to the log that receives standard error.
const errorsName = "adit.err"

// logged returns d.Run with its log in the file that the environment names. A log that cannot be
// written is no reason not to serve: it goes to standard error.
func logged(d Daemon) func(ctx context.Context) error {
	path := os.Getenv(EnvLogFile)
	if path == "" || d.Log != nil || d.LogTo != nil {
		return d.Run
	}
	return func(ctx context.Context) error {
		boundErr := logfile.Bound(filepath.Join(filepath.Dir(path), errorsName), errorsSize)
		// Crash output goes there too.
		file, err := logfile.Open(path, logSize, logKeep, func(f *os.File) { _ = debug.SetCrashOutput(f, debug.CrashOptions{}) })
		if err != nil {
			slog.Warn("the log goes to standard error", "error", err)
			return d.Run(ctx)
		}
		defer file.Close()
		log := slog.New(slog.NewTextHandler(file, nil))
		if boundErr != nil {
			log.Warn("what the service manager writes is not bounded", "error", boundErr)
		}
		d.LogTo = file
		err = d.Run(ctx)
		if err != nil {
			log.Error("daemon failed", "error", err)
		}
		return err
	}
}
