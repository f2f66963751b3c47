package tray

import (
	"testing"

	"golang.org/x/sys/windows/registry"
)

// ownRegistry has the test use keys of its own, all of them the person's.
func ownRegistry(t *testing.T) {
	t.Helper()
	const base = `Software\AditTest`
	before, beforeAll, beforeKey := own, everybodys, ownKey
	ownKey = base + `\Adit`
	own = autostart{registry.CURRENT_USER, base + `\Own\Run`, base + `\Own\Approved`, "Adit"}
	everybodys = autostart{registry.CURRENT_USER, base + `\All\Run`, base + `\All\Approved`, "Adit"}
	remove := func() {
		for _, path := range []string{own.run, own.approved, everybodys.run, everybodys.approved, ownKey, base + `\Own`, base + `\All`, base} {
			_ = registry.DeleteKey(registry.CURRENT_USER, path) // it may never have been made
		}
	}
	remove()
	t.Cleanup(func() {
		remove()
		own, everybodys, ownKey = before, beforeAll, beforeKey
	})
}

// note has Windows' settings note something of what starts at login.
func note(t *testing.T, a autostart, first byte) {
	t.Helper()
	key, _, err := registry.CreateKey(a.root, a.approved, registry.SET_VALUE)
	if err != nil {
		t.Fatal(err)
	}
	defer key.Close()
	if err := key.SetBinaryValue(a.value, []byte{first, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}); err != nil {
		t.Fatal(err)
	}
}

func wantStart(t *testing.T, want bool) {
	t.Helper()
	if got := (explorer{}).startsAtLogin(); got != want {
		t.Errorf("it starts at login: got %t, want %t", got, want)
	}
}

func TestWhatIsTurnedOffInTheTaskManagerDoesNotStart(t *testing.T) {
	ownRegistry(t)
	desk, command := explorer{}, []string{`C:\Program Files\Adit\adit-tray.exe`, "--autostart"}
	set := func(on bool) {
		t.Helper()
		if err := desk.setStartAtLogin(command, on); err != nil {
			t.Fatal(err)
		}
	}
	wantStart(t, false)
	set(true)
	wantStart(t, true)
	for first, starts := range map[byte]bool{2: true, 3: false, 6: true, 7: false} {
		note(t, own, first)
		wantStart(t, starts)
	}
	note(t, own, 3)
	set(true)
	wantStart(t, true)
	set(false)
	wantStart(t, false)

	if err := setValue(everybodys.run, everybodys.value, "adit-tray.exe"); err != nil {
		t.Fatal(err)
	}
	wantStart(t, true)
	note(t, everybodys, 3)
	wantStart(t, false)
	set(true)
	wantStart(t, true)
}
