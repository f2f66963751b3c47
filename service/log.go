package service

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"adit/internal/logfile"
)

// EnvLogFile names the daemon's log file. Our declarations set it where the
// service manager keeps no log: everywhere but under systemd.
const EnvLogFile = "ADIT_LOG_FILE"

// Bounds of the log: the newest file and four older ones.
const (
	logSize = 5 << 20
	logKeep = 4
	// errorsSize bounds what launchd and the init scripts write beside the log:
	// the daemon's last words of starts that did not come as far as the log.
	errorsSize = 1 << 20
)

// errorsName is the file beside the log for what goes to standard error.
const errorsName = "adit.err"

// logged is d.Run with its log in the file that the environment names. A log
// that cannot be written is no reason not to serve: it goes to standard error.
func logged(d Daemon) func(ctx context.Context) error {
	path := os.Getenv(EnvLogFile)
	if path == "" || d.Log != nil || d.LogTo != nil {
		return d.Run
	}
	return func(ctx context.Context) error {
		boundErr := logfile.Bound(filepath.Join(filepath.Dir(path), errorsName), errorsSize)
		// What a crash says goes there too.
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
