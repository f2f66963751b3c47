// Package service runs the daemon as a service of the operating system: it installs, starts, stops
// and queries it under systemd, OpenRC, System V init, launchd and the Windows service manager.
// Main runs the same program under each of them and in a terminal.
//
// What the daemon is made of is in this package too, in daemon.go.
package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Name is the service's name on systems with short names; Label is its name for launchd.
const (
	Name        = "adit"
	DisplayName = "adit"
	Label       = "dev.adit.daemon"
	Description = "Publishes services on this machine at public URLs"
)

// EnvRun names the folder in which the daemon keeps a second copy of runtime.json, for readers who
// may not enter its state folder. systemd sets it.
const EnvRun = "RUNTIME_DIRECTORY"

// The states of Status.
const (
	Running      = "running"
	Starting     = "starting"
	Stopped      = "stopped"
	Failed       = "failed"
	NotInstalled = "not installed"
	// Replaced is returned only by Uninstall: a package's service, which the removed one was
	// hiding, has taken its place.
	Replaced = "replaced"
	// Unknown is returned only by changes: the manager did not say.
	Unknown = "unknown"
)

// ErrNotInstalled is matched if the service to start or stop is not installed.
var ErrNotInstalled = errors.New("the service is not installed: run adit service install first")

// Status is what anybody may know about the service.
type Status struct {
	State   string `json:"state"`
	Manager string `json:"manager"`           // the operating system's service manager
	File    string `json:"file,omitempty"`    // where the service is declared
	Owner   string `json:"owner,omitempty"`   // "package" if a package manager owns File
	Healthy bool   `json:"healthy"`           // /healthz answers
	Version string `json:"version,omitempty"` // of the daemon that answers
	Address string `json:"address,omitempty"` // where it answers
	Log     string `json:"log,omitempty"`     // where its log is read
}

// Time limits of the operations; if a manager takes longer, that is reported rather than waited
// for.
const (
	startLimit = 30 * time.Second
	stopLimit  = 40 * time.Second
)

// manager is one kind of service manager. Its methods contain only what differs; what is the same
// everywhere is in Install to Query below.
type manager interface {
	name() string
	// declared returns the file or key that declares the service, and whether a package owns it. An
	// empty file means that there is none.
	declared() (file string, packaged bool)
	install(ctx context.Context, exe string) error
	uninstall(ctx context.Context) error
	start(ctx context.Context) error
	stop(ctx context.Context) error
	state(ctx context.Context) (string, error)
	// runs reports whether exe is the program that the declaration names.
	runs(ctx context.Context, exe string) (bool, error)
	// log says where to read the daemon's log.
	log() string
}

// hider is a manager under which our declaration can hide a package's, if ours was there before the
// package.
type hider interface {
	// hidden returns the package's declaration that is hidden; empty if none is.
	hidden() string
}

// Install declares the service for the executable exe, to be started with the machine. An existing
// declaration of ours is replaced, and a running service is restarted with the new one. If a
// package owns the declaration, Install refuses, because ours would hide it.
//
// Like all functions that change the service, it returns the previous state.
func Install(ctx context.Context, exe string) (before string, err error) {
	m, err := current()
	if err != nil {
		return "", err
	}
	if file, packaged := m.declared(); packaged {
		return "", fmt.Errorf("a package has installed the service as %s: use adit service start, or %s first", file, packageRemoval)
	}
	if h, ok := m.(hider); ok && h.hidden() != "" {
		file, _ := m.declared()
		return "", fmt.Errorf("a package has installed the service, and %s hides it: run adit service uninstall, which removes that, or %s first", file, packageRemoval)
	}
	if err := checkExecutable(exe); err != nil {
		return "", err
	}
	return install(ctx, m, exe)
}

func install(ctx context.Context, m manager, exe string) (before string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit+stopLimit)
	defer cancel()
	before = stateOf(ctx, m)
	ran := before == Running || before == Starting || before == Failed
	if ran {
		if err := checkConfig(); err != nil {
			return before, err
		}
	}
	if before != NotInstalled {
		if err := m.stop(ctx); err != nil && !errors.Is(err, ErrNotInstalled) {
			return before, privileged(fmt.Errorf("stop the service to replace it: %w", err))
		}
	}
	if err := m.install(ctx, exe); err != nil {
		if ran {
			_ = m.start(ctx) // what was there goes on, if it is still there
		}
		return before, privileged(fmt.Errorf("install the service: %w", err))
	}
	if ran {
		if err := m.start(ctx); err != nil {
			return before, privileged(fmt.Errorf("start the service again: %w", err))
		}
	}
	return before, nil
}

// Uninstall stops the service and removes its declaration, along with anything left by an
// interrupted installation. It is not an error if there is nothing. If ours was hiding a package's
// service, that takes its place, and is started if ours was running.
func Uninstall(ctx context.Context) (before string, err error) {
	m, err := current()
	if err != nil {
		return "", err
	}
	return uninstall(ctx, m)
}

func uninstall(ctx context.Context, m manager) (before string, err error) {
	if file, packaged := m.declared(); packaged {
		return "", fmt.Errorf("a package has installed the service as %s: %s instead", file, packageRemoval)
	}
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	before = stateOf(ctx, m)
	if err := m.stop(ctx); err != nil && !errors.Is(err, ErrNotInstalled) && before != NotInstalled {
		return before, privileged(fmt.Errorf("stop the service to remove it: %w", err))
	}
	if err := m.uninstall(ctx); err != nil {
		return before, privileged(fmt.Errorf("remove the service: %w", err))
	}
	if _, packaged := m.declared(); !packaged {
		return before, nil
	}
	if before == Running || before == Starting || before == Failed {
		if err := m.start(ctx); err != nil {
			return before, privileged(fmt.Errorf("start the package's service in its place: %w", err))
		}
	}
	return Replaced, nil
}

// Start starts the service and waits until the daemon answers. It is not an error if it is running
// already.
func Start(ctx context.Context) (before string, err error) {
	m, err := current()
	if err != nil {
		return "", err
	}
	if err := checkConfig(); err != nil {
		return "", err
	}
	return start(ctx, m)
}

func start(ctx context.Context, m manager) (before string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if before = stateOf(ctx, m); before == NotInstalled {
		return before, ErrNotInstalled
	}
	if err := m.start(ctx); err != nil {
		return before, privileged(fmt.Errorf("start the service: %w", err))
	}
	return before, waitHealthy(ctx, m)
}

// Stop stops the service and waits until it has ended. It is not an error if it is stopped already.
func Stop(ctx context.Context) (before string, err error) {
	m, err := current()
	if err != nil {
		return "", err
	}
	return stop(ctx, m)
}

func stop(ctx context.Context, m manager) (before string, err error) {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	if before = stateOf(ctx, m); before == NotInstalled {
		return before, ErrNotInstalled
	}
	if err := m.stop(ctx); err != nil {
		return before, privileged(fmt.Errorf("stop the service: %w", err))
	}
	return before, nil
}

// Restart is Stop and Start.
func Restart(ctx context.Context) (before string, err error) {
	if err := checkConfig(); err != nil {
		return "", err
	}
	if before, err = Stop(ctx); err == nil {
		_, err = Start(ctx)
	}
	return before, err
}

// Runs reports whether a service whose program is exe is installed and not stopped. A service that
// does not say what it runs is assumed to run exe.
func Runs(ctx context.Context, exe string) bool {
	m, err := current()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return runs(ctx, m, exe)
}

func runs(ctx context.Context, m manager, exe string) bool {
	if state := stateOf(ctx, m); state == NotInstalled || state == Stopped {
		return false
	}
	yes, err := m.runs(ctx, exe)
	return yes || err != nil
}

// sameFile reports whether two paths are the same or lead to the same file.
func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// stateOf returns m's state. If the manager does not say, a service that is declared may be
// running.
func stateOf(ctx context.Context, m manager) string {
	if file, _ := m.declared(); file == "" {
		return NotInstalled
	}
	state, err := m.state(ctx)
	if err != nil {
		return Unknown
	}
	return state
}

// Query returns the service's state. It asks for nothing that an ordinary user may not ask: if the
// manager does not answer, the presence of the declaration and the daemon's own health decide.
func Query(ctx context.Context) (Status, error) {
	m, err := current()
	if err != nil {
		return Status{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s := Status{Manager: m.name()}
	file, packaged := m.declared()
	s.File = file
	if packaged {
		s.Owner = "package"
	}
	health, healthErr := Probe(ctx)
	if healthErr == nil {
		s.Healthy, s.Version, s.Address = true, health.Version, health.Address
	}
	if file == "" {
		s.State = NotInstalled
		return s, nil
	}
	s.Log = m.log()
	if s.State, err = m.state(ctx); err != nil {
		s.State = Stopped
		if s.Healthy {
			s.State = Running
		}
	}
	return s, nil
}

// waitHealthy waits until the daemon answers, and gives up early if the manager says that the
// service has failed.
func waitHealthy(ctx context.Context, m manager) error {
	for {
		if _, err := Probe(ctx); err == nil {
			return nil
		}
		if state, err := m.state(ctx); err == nil && (state == Failed || state == Stopped) {
			return fmt.Errorf("the service was started and has ended again (%s): %s says why", state, m.log())
		}
		if pause(ctx) != nil {
			return fmt.Errorf("the service was started, but the daemon did not answer in time: %s says why", m.log())
		}
	}
}

// pause waits between two checks of what a manager is doing, and returns an error if ctx has ended.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(200 * time.Millisecond):
		return nil
	}
}

// privileged says what to do about an error caused by missing rights.
func privileged(err error) error {
	if err == nil || elevated() {
		return err
	}
	return fmt.Errorf("%w; %s", err, elevationHint)
}

// checkExecutable refuses a program that the service could not read, or that its user could replace
// to gain the service's rights.
func checkExecutable(exe string) error {
	if !filepath.IsAbs(exe) {
		return fmt.Errorf("the service needs the program's full path, got %q", exe)
	}
	info, err := os.Stat(exe)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a folder", exe)
	}
	return checkOwner(exe, info)
}
