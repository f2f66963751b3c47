package desktoptest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"adit/internal/require"
)

// TestWindowsInstallersLeaveEachOthersWorkAlone installs one over the other: each
// refuses, and what was there goes on.
func TestWindowsInstallersLeaveEachOthersWorkAlone(t *testing.T) {
	t.Parallel()
	w := newWindows(t)
	folder := results(t, firstVersion)
	setup, msi := one(t, folder, "*-setup.exe"), one(t, folder, "*.msi")
	goesOn := func(how string) {
		t.Helper()
		w.answers("0.1.0")
		if program, service, tray := w.exists(programs+"adit.exe"), w.has(serviceKey), w.has(runKey, "Adit"); !program || !service || !tray {
			t.Errorf("what the %s has installed is not whole any more: the program is there: %v, the service: %v, the tray: %v", how, program, service, tray)
		}
	}

	w.must(setup, "/S")
	w.answers("0.1.0")
	if out, err := w.run(patience, "msiexec", "/i", msi, "/qn"); err == nil {
		t.Errorf("the MSI installs over the setup program's installation: %s", out)
	}
	goesOn("setup program")
	w.must(setup, "/S") // again, which it may
	goesOn("setup program")
	w.must(`C:\Program Files\Adit\uninstall.exe`, "/S", "/PURGE")
	w.nothing()

	w.msi("/i", msi)
	w.answers("0.1.0")
	out, err := w.run(patience, setup, "/S")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 6 {
		t.Errorf("the setup program over an MSI's installation: got %v, want exit code 6; %s", err, out)
	}
	goesOn("MSI")
	if w.exists(programs+"uninstall.exe") || w.has(uninstallKey) {
		t.Error("the setup program has left its own entry")
	}
	w.unmsi(msi)
	w.must(setup, "/S") // now it may
	goesOn("setup program")
}

// TestWindowsSetupThatCannotBeFinished leaves nothing, and one that was put
// elsewhere is updated there.
func TestWindowsSetupThatCannotBeFinished(t *testing.T) {
	t.Parallel()
	w := newWindows(t)
	setup := one(t, results(t, firstVersion), "*-setup.exe")
	state := w.file("ProgramData/Adit")
	if err := os.WriteFile(state, []byte("in the place of a folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := w.run(patience, setup, "/S")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 4 {
		t.Errorf("without a folder for the state: got %v, want exit code 4; %s", err, out)
	}
	// The folder itself may be held for a while by what has just ended.
	left, err := filepath.Glob(w.file(programs + "*"))
	if err != nil || len(left) > 0 || w.has(uninstallKey) || w.has(runKey, "Adit") || w.has(serviceKey) {
		t.Errorf("a setup that could not be finished has left a part of it, of files %v; error %v", left, err)
	}
	_ = os.Remove(w.file("Program Files/Adit")) // it is gone already, mostly
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	const elsewhere = `C:\Elsewhere\Adit`
	w.must(setup, "/S", "/D="+elsewhere)
	w.answers("0.1.0")
	w.must(setup, "/S")
	w.answers("0.1.0")
	if declared := w.must("reg", "query", serviceKey); w.exists(programs) || !strings.Contains(declared, elsewhere) {
		t.Errorf("an update of what was put into %s went elsewhere:\n%s", elsewhere, declared)
	}
	w.must(elsewhere+`\uninstall.exe`, "/S", "/PURGE")
	until(t, patience, "the program is still there", func() bool { return !w.exists("Elsewhere/Adit") && !w.has(uninstallKey) })
	w.nothing()
}

// TestMSIRefusesAndMendsInItsPlace reads the MSI's tables, without Windows: what
// is deferred must be within the installation's transaction, or Windows fails it.
func TestMSIRefusesAndMendsInItsPlace(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	for _, tool := range []string{"msiinfo", "wixl", "makensis"} {
		require.Tool(t, tool)
	}
	file := one(t, results(t, firstVersion), "*.msi")
	sequence, condition := map[string]string{}, map[string]string{}
	for line := range strings.Lines(must(t, patience, nil, "msiinfo", "export", file, "InstallExecuteSequence")) {
		if cells := strings.Split(strings.TrimSpace(line), "\t"); len(cells) == 3 {
			sequence[cells[0]], condition[cells[0]] = cells[2], cells[1]
		}
	}
	for _, order := range [][2]string{
		{"AppSearch", "LaunchConditions"},
		{"LaunchConditions", "InstallInitialize"},
		{"InstallInitialize", "RemoveExistingProducts"}, // or a failed upgrade leaves no adit
		{"RemoveExistingProducts", "FindEnder"},
		{"InstallInitialize", "FindEnder"},
		{"FindEnder", "EndTray"},
		{"EndTray", "SweepTrays"},
		{"SweepTrays", "RemoveFiles"},
		{"InstallInitialize", "SetTrayAside"},
		{"SetTrayAside", "RemoveFiles"},
		{"SetTrayAside", "InstallFiles"},
		{"InstallFiles", "SweepTray"},
		{"SweepTray", "InstallFinalize"},
		{"InstallServices", "Mend"},
		{"Mend", "StartServices"},
		{"Mend", "InstallFinalize"},
	} {
		before, after := sequence[order[0]], sequence[order[1]]
		if before == "" || after == "" || len(before) > len(after) || len(before) == len(after) && before >= after {
			t.Errorf("%s is at %q and %s at %q, want them in this order", order[0], before, order[1], after)
		}
	}
	// 2: the component is removed; 3: it is laid.
	for action, want := range map[string]string{
		"SetTrayAside": "$Tray=3 OR ($Tray=2 AND UPGRADINGPRODUCTCODE)",
		"SweepTray":    "$Tray=3",
		"EndTray":      "$Tray=2 AND NOT UPGRADINGPRODUCTCODE",
		"SweepTrays":   "$Tray=2 AND NOT UPGRADINGPRODUCTCODE",
	} {
		if got := condition[action]; got != want {
			t.Errorf("%s is done if %q, want %q", action, got, want)
		}
	}
	if conditions := must(t, patience, nil, "msiinfo", "export", file, "LaunchCondition"); !strings.Contains(conditions, "Installed OR NOT ADITSETUP\tadit was installed by its setup program") {
		t.Errorf("the launch conditions are\n%s", conditions)
	}
	// 2: a raw value; 16: of the 64-bit registry.
	if search := must(t, patience, nil, "msiinfo", "export", file, "RegLocator"); !strings.Contains(search, `Uninstall\Adit`+"\tUninstallString\t18") {
		t.Errorf("the search for the setup program's entry is\n%s", search)
	}
	// A release replaces one with the same three numbers, as its candidate; 256: from
	// the first version on, up to and without the second.
	if upgrades := must(t, patience, nil, "msiinfo", "export", file, "Upgrade"); !strings.Contains(upgrades, "\t"+firstVersion+"\t0.1.1\t\t256\t") {
		t.Errorf("what is upgraded is\n%s", upgrades)
	}
	// The table of files has no versions, those on the disk do.
	if properties := must(t, patience, nil, "msiinfo", "export", file, "Property"); !strings.Contains(properties, "REINSTALLMODE\tamus") {
		t.Errorf("files that are there may stay; the properties are\n%s", properties)
	}
	// 50: a program that a property names; 64: whose failure is none; 1024 and 2048:
	// deferred, and as the system.
	if actions := must(t, patience, nil, "msiinfo", "export", file, "CustomAction"); !strings.Contains(actions, "EndTray\t3186\tTrayEnder\t/F /IM adit-tray.exe") ||
		!strings.Contains(actions, "\tTrayEnder\t[System64Folder]taskkill.exe") {
		t.Errorf("nothing ends the trays that run; the actions are\n%s", actions)
	}
	script, err := os.ReadFile("../../build/windows/adit.nsi")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../build/windows/adit.wxs")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), `UpgradeCode="`)
	code, _, _ := strings.Cut(rest, `"`)
	if len(code) != 36 || !strings.Contains(string(script), "{"+strings.ToUpper(code)+"}") {
		t.Errorf("the setup program does not look for the MSI's UpgradeCode %s", code)
	}
}
