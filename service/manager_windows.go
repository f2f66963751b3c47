package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
	"golang.org/x/sys/windows/svc/mgr"

	"adit/internal/paths"
)

const (
	elevationHint = "run it in a terminal that was opened as administrator"
	serviceKey    = `SYSTEM\CurrentControlSet\Services\` + Name
	account       = `NT AUTHORITY\LocalService`
)

// tellsEverybody says whether a service always writes a runtime.json that everybody can read. Wine
// does not give services their environment, which says where to put it.
const tellsEverybody = false

func elevated() bool { return windows.GetCurrentProcessToken().IsElevated() }

func checkOwner(exe string, _ fs.FileInfo) error { return checkProgram(exe) }

// packageRemoval says how to remove a package that has installed the service.
const packageRemoval = "remove the package"

func current() (manager, error) { return scm{}, nil }

// scm is the Windows service manager.
type scm struct{}

func (scm) name() string { return "windows" }

func (scm) log() string {
	return filepath.Join(paths.Service().State, "log", "adit.log") + " (or the Event Log, source adit)"
}

// declared reads the registry, which everybody may do; the manager itself answers an ordinary user
// only with the right access mask.
func (scm) declared() (string, bool) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, serviceKey, registry.QUERY_VALUE)
	if err != nil {
		return "", false
	}
	defer key.Close()
	if _, _, err := key.GetStringValue("ImagePath"); err != nil {
		return "", false // half removed: it is not there until the next start of the machine
	}
	return `HKLM\` + serviceKey, false
}

func (scm) runs(_ context.Context, exe string) (bool, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, serviceKey, registry.QUERY_VALUE)
	if err != nil {
		return false, err
	}
	defer key.Close()
	command, _, err := key.GetStringValue("ImagePath")
	if err != nil {
		return false, err
	}
	program, err := firstWord(quotedProgram(command))
	return err == nil && (strings.EqualFold(program, exe) || sameFile(program, exe)), err
}

func firstWord(command string) (string, error) {
	words, err := windows.DecomposeCommandLine(command)
	if err != nil || len(words) == 0 {
		return "", fmt.Errorf("the service's program is not in %q: %w", command, err)
	}
	return words[0], nil
}

func (s scm) uninstall(ctx context.Context) error {
	err := s.remove(ctx)
	// The source may never have been created.
	_ = eventlog.Remove(Name)
	return err
}

// remove deletes the service and waits until it is gone, because one that is only marked for
// deletion cannot be created again.
func (scm) remove(ctx context.Context) error {
	m, service, err := open(windows.SC_MANAGER_CONNECT, windows.SERVICE_ALL_ACCESS)
	if errors.Is(err, ErrNotInstalled) {
		return nil
	}
	if err != nil {
		return err
	}
	defer m.Disconnect()
	err = service.Delete()
	service.Close()
	if err != nil && !errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
		return err
	}
	for {
		again, still, err := open(windows.SC_MANAGER_CONNECT, windows.SERVICE_QUERY_STATUS)
		if err != nil {
			return nil
		}
		still.Close()
		again.Disconnect()
		if err := pause(ctx); err != nil {
			return errors.New("the service is to be deleted, but a program (the service console, or the event viewer) holds it: close it")
		}
	}
}

func (scm) start(ctx context.Context) error {
	m, service, err := open(windows.SC_MANAGER_CONNECT, windows.SERVICE_START|windows.SERVICE_QUERY_STATUS)
	if err != nil {
		return err
	}
	defer m.Disconnect()
	defer service.Close()
	if err := service.Start(); err != nil && !errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
		return err
	}
	return await(ctx, service, svc.Running)
}

func (scm) stop(ctx context.Context) error {
	m, service, err := open(windows.SC_MANAGER_CONNECT, windows.SERVICE_STOP|windows.SERVICE_QUERY_STATUS)
	if err != nil {
		return err
	}
	defer m.Disconnect()
	defer service.Close()
	ended := process(service)
	defer ended.close()
	if err := tellToStop(ctx, service); err != nil {
		return err
	}
	if err := await(ctx, service, svc.Stopped); err != nil {
		return err
	}
	return ended.wait(ctx)
}

// tellToStop tells a service to stop as soon as it can be told: one that is starting neither
// accepts nor remembers requests.
func tellToStop(ctx context.Context, service *mgr.Service) error {
	for {
		_, err := service.Control(svc.Stop)
		if err == nil || errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) {
			return nil
		}
		if !errors.Is(err, windows.ERROR_SERVICE_CANNOT_ACCEPT_CTRL) {
			return err
		}
		status, err := service.Query()
		if err != nil {
			return err
		}
		if status.State == svc.Stopped || status.State == svc.StopPending {
			return nil
		}
		if pause(ctx) != nil {
			return errors.New("the service is still starting, and takes no orders until it has started")
		}
	}
}

// program is the process of a service; zero if there is none, or if the person may not wait for it.
type program windows.Handle

func process(service *mgr.Service) program {
	status, err := service.Query()
	if err != nil || status.ProcessId == 0 {
		return 0
	}
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE, false, status.ProcessId)
	if err != nil {
		return 0
	}
	return program(handle)
}

// wait returns when the process has ended, which is a moment after it reports that it is stopping;
// until then its file cannot be replaced.
func (p program) wait(ctx context.Context) error {
	for p != 0 {
		if event, err := windows.WaitForSingleObject(windows.Handle(p), 0); err != nil || event == windows.WAIT_OBJECT_0 {
			return nil
		}
		if err := pause(ctx); err != nil {
			return errors.New("the service has stopped, but its program has not ended in time")
		}
	}
	return nil
}

func (p program) close() {
	if p != 0 {
		windows.CloseHandle(windows.Handle(p))
	}
}

func (scm) state(context.Context) (string, error) {
	m, service, err := open(windows.SC_MANAGER_CONNECT, windows.SERVICE_QUERY_STATUS)
	if errors.Is(err, ErrNotInstalled) {
		return NotInstalled, nil
	}
	if err != nil {
		return "", err
	}
	defer m.Disconnect()
	defer service.Close()
	status, err := service.Query()
	if err != nil {
		return "", err
	}
	switch status.State {
	case svc.Running:
		return Running, nil
	case svc.StartPending, svc.ContinuePending:
		return Starting, nil
	}
	if status.Win32ExitCode != 0 && status.Win32ExitCode != uint32(windows.ERROR_SERVICE_NEVER_STARTED) {
		return Failed, nil
	}
	return Stopped, nil
}

// open asks for no more rights than it needs, so that what an ordinary user may do needs no
// administrator.
func open(managerRights, serviceRights uint32) (*mgr.Mgr, *mgr.Service, error) {
	handle, err := windows.OpenSCManager(nil, nil, managerRights)
	if err != nil {
		return nil, nil, fmt.Errorf("ask the service manager: %w", err)
	}
	m := &mgr.Mgr{Handle: handle}
	name, err := windows.UTF16PtrFromString(Name)
	if err != nil {
		m.Disconnect()
		return nil, nil, err
	}
	service, err := windows.OpenService(handle, name, serviceRights)
	if err != nil {
		m.Disconnect()
		if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
			return nil, nil, ErrNotInstalled
		}
		return nil, nil, fmt.Errorf("ask for the service: %w", err)
	}
	return m, &mgr.Service{Handle: service, Name: Name}, nil
}

func await(ctx context.Context, service *mgr.Service, want svc.State) error {
	for {
		status, err := service.Query()
		if err != nil {
			return err
		}
		if status.State == want {
			return nil
		}
		if want == svc.Running && status.State == svc.Stopped {
			return fmt.Errorf("the service ended at once (exit code %d): %s says why", status.Win32ExitCode, scm{}.log())
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("the service did not come to the wanted state in time (it is in state %d)", status.State)
		}
	}
}
