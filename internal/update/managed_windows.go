package update

import (
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

const (
	// setupKey is the entry that the setup program makes in the list of programs.
	setupKey = `Software\Microsoft\Windows\CurrentVersion\Uninstall\Adit`
	// msiComponent is the component of the MSI package that has adit.exe.
	msiComponent = "{0B7A5A52-9B0E-5D3C-8F5E-3C2A2C5F7A01}"
)

var locateComponent = windows.NewLazySystemDLL("msi.dll").NewProc("MsiLocateComponentW")

// installed reports whether the setup program or the MSI package has laid exe.
func installed(exe string) bool {
	dir := filepath.Dir(exe)
	for _, known := range []string{setupFolder(), msiFolder()} {
		if known == "" {
			continue
		}
		a, errA := os.Stat(dir)
		b, errB := os.Stat(known)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return true
		}
	}
	return false
}

func setupFolder() string {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, setupKey, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer key.Close()
	folder, _, err := key.GetStringValue("InstallLocation")
	if err != nil {
		return ""
	}
	return folder
}

func msiFolder() string {
	const installStateLocal = 3
	component, err := windows.UTF16PtrFromString(msiComponent)
	if err != nil {
		return ""
	}
	path := make([]uint16, windows.MAX_LONG_PATH)
	size := uint32(len(path))
	state, _, _ := locateComponent.Call(uintptr(unsafe.Pointer(component)), uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&size)))
	if int32(state) != installStateLocal {
		return ""
	}
	return filepath.Dir(windows.UTF16ToString(path))
}
