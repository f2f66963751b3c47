package service

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"
)

func TestFolderIsMadeAndMended(t *testing.T) {
	// Not t.TempDir, which Wine cannot remove.
	dir, err := os.MkdirTemp("", "adit")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(dir)
	state := filepath.Join(dir, "Adit")
	defer os.Remove(state)
	for range 2 {
		if err := makeFolder(state, rightsToState); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file)
	if err := makeFolder(file, rightsToState); err == nil {
		t.Error("a file passed for the service's folder")
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(state, link); err != nil {
		t.Logf("no link can be made here: %v", err)
		return
	}
	defer os.Remove(link)
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Logf("a link is not told from its target here: %v, %v", info, err)
		return
	}
	if err := makeFolder(link, rightsToState); err == nil {
		t.Error("a link passed for the service's folder")
	}
}

func TestProgramOpenToAllIsTold(t *testing.T) {
	for rights, want := range map[string]bool{
		"D:(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;BU)":       false, // Program Files
		"D:(A;;FA;;;SY)(A;;FA;;;BA)(A;ID;0x1301bf;;;AU)":     true,  // a folder of C:\\
		"D:(A;;FA;;;BA)(A;OICIIO;GA;;;WD)(A;;0x1200a9;;;WD)": false, // for what comes into it alone
		"D:(A;;FA;;;BA)(A;;0x2;;;IU)":                        true,
		"D:(A;;FA;;;BA)(D;;FA;;;WD)":                         false,
		"D:(A;;FA;;;BA)(A;;FA;;;S-1-5-21-1-2-3-1001)":        false, // a person whom somebody trusts
	} {
		sd, err := windows.SecurityDescriptorFromString(rights)
		if err != nil {
			t.Logf("%s: %v", rights, err) // Wine does not read all of them
			continue
		}
		if got, err := openToAll(sd); err != nil || got != want {
			t.Errorf("%s: got %v, error %v, want %v", rights, got, err, want)
		}
	}
}
