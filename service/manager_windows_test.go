package service

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// installed installs the service; the context is for what a test does with it.
func installed(t *testing.T) context.Context {
	t.Helper()
	if file, _ := (scm{}).declared(); file != "" || !elevated() {
		t.Skip("needs an administrator, on a Windows without the service")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	if err := (scm{}).install(ctx, `C:\Before\adit.exe`); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// TestAServiceThatSomebodyLooksAtIsInstalledAnew has a program hold the service, as the
// service console does while it is open: Windows deletes no service meanwhile.
func TestAServiceThatSomebodyLooksAtIsInstalledAnew(t *testing.T) {
	ctx := installed(t)
	defer func() {
		if err := (scm{}).uninstall(ctx); err != nil {
			t.Error(err)
		}
	}()
	m, held, err := open(windows.SC_MANAGER_CONNECT, windows.SERVICE_QUERY_STATUS)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Disconnect()
	defer held.Close()
	const moved = `C:\Program Files\Adit\adit.exe`
	soon, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := (scm{}).install(soon, moved); err != nil {
		t.Fatalf("install again: %v", err)
	}
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, serviceKey, registry.QUERY_VALUE)
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	if got, _, err := key.GetStringValue("ImagePath"); got != `"`+moved+`" start` {
		t.Errorf("the service runs %s, %v", got, err)
	}
	if got, _, err := key.GetStringValue("ObjectName"); got != account {
		t.Errorf("the service runs as %s, %v; want %s", got, err, account)
	}
	if got, _, err := key.GetStringsValue("Environment"); len(got) != len(environment()) {
		t.Errorf("the service is told %q, %v", got, err)
	}
}

// TestAServiceThatIsToBeDeletedIsWaitedFor has somebody look at the service for as long as
// it takes to find out, and then for a moment.
func TestAServiceThatIsToBeDeletedIsWaitedFor(t *testing.T) {
	ctx := installed(t)
	m, held, err := open(windows.SC_MANAGER_CONNECT, windows.SERVICE_ALL_ACCESS)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Disconnect()
	if err := held.Delete(); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := (scm{}).install(soon, `C:\After\adit.exe`); err == nil || errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
		t.Errorf("install while it is held: got %v, want what to do about it", err)
	}
	time.AfterFunc(time.Second, func() { held.Close() })
	if err := (scm{}).install(ctx, `C:\After\adit.exe`); err != nil {
		t.Errorf("install once it is let go: %v", err)
	}
	if err := (scm{}).uninstall(ctx); err != nil {
		t.Error(err)
	}
}

func TestQuotedProgramLeavesNoRoomForAnother(t *testing.T) {
	for command, want := range map[string]string{
		`C:\Program Files\Adit\adit.exe start`:   `"C:\Program Files\Adit\adit.exe" start`,
		`"C:\Program Files\Adit\adit.exe" start`: `"C:\Program Files\Adit\adit.exe" start`,
		`C:\Adit\ADIT.EXE start`:                 `C:\Adit\ADIT.EXE start`,
		`C:\My Tools\ADIT.EXE`:                   `"C:\My Tools\ADIT.EXE"`,
		``:                                       ``,
	} {
		if got := quotedProgram(command); got != want {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
}

func TestTheProgramOfAServiceIsTold(t *testing.T) {
	for command, want := range map[string]string{
		`C:\Program Files\Adit\adit.exe start`:   `C:\Program Files\Adit\adit.exe`,
		`"C:\Program Files\Adit\adit.exe" start`: `C:\Program Files\Adit\adit.exe`,
		`C:\Adit\ADIT.EXE start`:                 `C:\Adit\ADIT.EXE`,
	} {
		if got, err := firstWord(quotedProgram(command)); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", command, got, err, want)
		}
	}
}
