package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	kardianos "github.com/kardianos/service"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc/eventlog"
	"golang.org/x/sys/windows/svc/mgr"

	"adit/internal/paths"
)

// environment tells the service where things are.
func environment() map[string]string {
	where := paths.Service()
	return map[string]string{
		paths.EnvConfig: where.Config,
		paths.EnvState:  where.State,
		EnvRun:          paths.Public(),
		EnvLogFile:      filepath.Join(where.State, "log", "adit.log"),
	}
}

func (s scm) install(ctx context.Context, exe string) error {
	if err := makeFolders(); err != nil {
		return err
	}
	// An event source left by an older installation is not fatal: it is created again.
	_ = eventlog.Remove(Name)
	err := renew(exe)
	if errors.Is(err, ErrNotInstalled) || errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
		err = s.make(ctx, exe)
	}
	if err != nil {
		return err
	}
	return Harden()
}

// make creates the service, once any that is marked for deletion is gone.
func (s scm) make(ctx context.Context, exe string) error {
	if err := s.remove(ctx); err != nil {
		return err
	}
	svc, err := kardianos.New(nil, &kardianos.Config{
		Name: Name, DisplayName: DisplayName, Description: Description,
		Executable: exe, Arguments: []string{"start"}, UserName: account, EnvVars: environment(),
	})
	if err != nil {
		return err
	}
	return svc.Install()
}

// renew updates the declaration of an existing service in place. Deleting it first would be the end
// of it if somebody has the service console open: Windows deletes a service only when nobody has it
// open any more, and until then it cannot be created again.
func renew(exe string) error {
	m, service, err := open(windows.SC_MANAGER_CONNECT, windows.SERVICE_ALL_ACCESS)
	if err != nil {
		return err
	}
	defer m.Disconnect()
	defer service.Close()
	command, err := windows.UTF16PtrFromString(windows.ComposeCommandLine([]string{exe, "start"}))
	if err != nil {
		return fmt.Errorf("declare the service's program: %w", err)
	}
	as, err := windows.UTF16PtrFromString(account)
	if err != nil {
		return err
	}
	shown, err := windows.UTF16PtrFromString(DisplayName)
	if err != nil {
		return err
	}
	err = windows.ChangeServiceConfig(service.Handle, windows.SERVICE_WIN32_OWN_PROCESS, windows.SERVICE_AUTO_START, windows.SERVICE_ERROR_NORMAL,
		command, nil, nil, nil, as, nil, shown)
	if err != nil {
		return fmt.Errorf("declare the service anew: %w", err)
	}
	text, err := windows.UTF16PtrFromString(Description)
	if err != nil {
		return err
	}
	described := windows.SERVICE_DESCRIPTION{Description: text}
	if err := windows.ChangeServiceConfig2(service.Handle, windows.SERVICE_CONFIG_DESCRIPTION, (*byte)(unsafe.Pointer(&described))); err != nil {
		return fmt.Errorf("describe the service: %w", err)
	}
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, serviceKey, registry.SET_VALUE)
	if err != nil {
		return fmt.Errorf("tell the service where things are: %w", err)
	}
	defer key.Close()
	var told []string
	for name, value := range environment() {
		told = append(told, name+"="+value)
	}
	slices.Sort(told)
	if err := key.SetStringsValue("Environment", told); err != nil {
		return fmt.Errorf("tell the service where things are: %w", err)
	}
	// With a source, it logs more to the event log; it also runs without one.
	_ = eventlog.InstallAsEventCreate(Name, eventlog.Error|eventlog.Warning|eventlog.Info)
	return nil
}

// Harden configures the recovery actions of the installed service: it is restarted after a crash
// and after an exit with an error. Installers that declare the service by their own means call it
// too.
func Harden() error {
	if err := makeFolders(); err != nil {
		return err
	}
	m, service, err := open(windows.SC_MANAGER_CONNECT, windows.SERVICE_ALL_ACCESS)
	if err != nil {
		return err
	}
	defer m.Disconnect()
	defer service.Close()
	if err := quoteProgram(service); err != nil {
		return err
	}
	actions := []mgr.RecoveryAction{
		{Type: mgr.ServiceRestart, Delay: 2 * time.Second},
		{Type: mgr.ServiceRestart, Delay: 2 * time.Second},
		{Type: mgr.ServiceRestart, Delay: 10 * time.Second},
	}
	if err := service.SetRecoveryActions(actions, 3600); err != nil {
		return fmt.Errorf("set the recovery actions: %w", err)
	}
	// Wine's service manager does not know this setting.
	if err := service.SetRecoveryActionsOnNonCrashFailures(true); err != nil && !errors.Is(err, windows.ERROR_INVALID_LEVEL) {
		return fmt.Errorf("set the recovery actions: %w", err)
	}
	return nil
}

// quoteProgram puts quotes around the program's path if an installer has not: without them, Windows
// also tries C:\Program.exe, which may be anybody's.
func quoteProgram(service *mgr.Service) error {
	// Not service.Config, which asks for more than Wine supports.
	var have string
	for size := uint32(1 << 10); ; {
		buffer := make([]byte, size)
		config := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
		err := windows.QueryServiceConfig(service.Handle, config, size, &size)
		if err == nil {
			have = windows.UTF16PtrToString(config.BinaryPathName)
			break
		}
		if !errors.Is(err, windows.ERROR_INSUFFICIENT_BUFFER) || int(size) <= len(buffer) {
			return fmt.Errorf("read the service's declaration: %w", err)
		}
	}
	quoted := quotedProgram(have)
	if quoted == have {
		return nil
	}
	command, err := windows.UTF16PtrFromString(quoted)
	if err != nil {
		return fmt.Errorf("quote the service's program: %w", err)
	}
	err = windows.ChangeServiceConfig(service.Handle, windows.SERVICE_NO_CHANGE, windows.SERVICE_NO_CHANGE, windows.SERVICE_NO_CHANGE,
		command, nil, nil, nil, nil, nil, nil)
	if err != nil {
		return fmt.Errorf("quote the service's program: %w", err)
	}
	return nil
}

func quotedProgram(command string) string {
	end := strings.Index(strings.ToLower(command), ".exe")
	if strings.HasPrefix(command, `"`) || end < 0 || !strings.Contains(command[:end], " ") {
		return command
	}
	return `"` + command[:end+4] + `"` + command[end+4:]
}
