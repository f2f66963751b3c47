package tray

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

const iconKind = "ico"

var (
	user32           = windows.NewLazySystemDLL("user32.dll")
	kernel32         = windows.NewLazySystemDLL("kernel32.dll")
	shell32          = windows.NewLazySystemDLL("shell32.dll")
	openClipboard    = user32.NewProc("OpenClipboard")
	closeClipboard   = user32.NewProc("CloseClipboard")
	emptyClipboard   = user32.NewProc("EmptyClipboard")
	setClipboardData = user32.NewProc("SetClipboardData")
	findWindow       = user32.NewProc("FindWindowExW")
	windowProcess    = user32.NewProc("GetWindowThreadProcessId")
	globalAlloc      = kernel32.NewProc("GlobalAlloc")
	globalFree       = kernel32.NewProc("GlobalFree")
	globalLock       = kernel32.NewProc("GlobalLock")
	globalUnlock     = kernel32.NewProc("GlobalUnlock")
	registerRestart  = kernel32.NewProc("RegisterApplicationRestart")
	notifyIcon       = shell32.NewProc("Shell_NotifyIconW")
)

// system connects to the person's desktop.
func system(clicks chan<- Action, _ *slog.Logger) (desk, screen, error) {
	return explorer{}, newScreen(clicks), nil
}

// explorer is the Windows desktop.
type explorer struct{}

// notifyIconData is NOTIFYICONDATAW.
type notifyIconData struct {
	size            uint32
	window          uintptr
	id              uint32
	flags           uint32
	callbackMessage uint32
	icon            uintptr
	tip             [128]uint16
	state           uint32
	stateMask       uint32
	info            [256]uint16
	version         uint32
	infoTitle       [64]uint16
	infoFlags       uint32
	guid            windows.GUID
	balloonIcon     uintptr
}

// notify shows a balloon at the icon of the systray library, which it finds by its window class.
func (explorer) notify(n Notice) error {
	const (
		nimModify     = 1
		nifInfo       = 0x10
		niifUser      = 4
		libraryIconID = 100
	)
	class, err := windows.UTF16PtrFromString("SystrayClass")
	if err != nil {
		return err
	}
	window := ownWindow(class)
	if window == 0 {
		return errors.New("show a notification: the icon is not there")
	}
	data := notifyIconData{window: window, id: libraryIconID, flags: nifInfo, infoFlags: niifUser}
	data.size = uint32(unsafe.Sizeof(data))
	put(data.infoTitle[:], n.Title)
	put(data.info[:], n.Body)
	if n.Body == "" {
		put(data.info[:], n.Title) // a balloon without a body is not shown
	}
	if ok, _, err := notifyIcon.Call(nimModify, uintptr(unsafe.Pointer(&data))); ok == 0 {
		return fmt.Errorf("show a notification: %w", err)
	}
	return nil
}

// ownWindow returns this process's window of a class, or zero. Other programs that use the same
// library have such windows too.
func ownWindow(class *uint16) uintptr {
	for window := uintptr(0); ; {
		window, _, _ = findWindow.Call(0, window, uintptr(unsafe.Pointer(class)), 0)
		if window == 0 {
			return 0
		}
		var process uint32
		windowProcess.Call(window, uintptr(unsafe.Pointer(&process)))
		if process == windows.GetCurrentProcessId() {
			return window
		}
	}
}

// put writes as much of s as fits, terminated by a zero.
func put(to []uint16, s string) {
	text, err := windows.UTF16FromString(strings.ReplaceAll(s, "\x00", " "))
	if err != nil {
		return
	}
	if len(text) > len(to) {
		text = append(text[:len(to)-1:len(to)-1], 0)
	}
	copy(to, text)
}

func (explorer) open(address string) error {
	verb, err := windows.UTF16PtrFromString("open")
	if err != nil {
		return err
	}
	file, err := windows.UTF16PtrFromString(address)
	if err != nil {
		return err
	}
	if err := windows.ShellExecute(0, verb, file, nil, nil, windows.SW_SHOWNORMAL); err != nil {
		return fmt.Errorf("open %s: %w", address, err)
	}
	return nil
}

// clipboardWait is how long another program may hold the clipboard, as clipboard managers briefly
// do. clipboardPace is how often to retry.
const (
	clipboardWait = time.Second
	clipboardPace = 20 * time.Millisecond
)

func (explorer) copyText(text string) error {
	const (
		cfUnicodeText = 13
		gmemMoveable  = 2
	)
	data, err := windows.UTF16FromString(text)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	// The clipboard belongs to the thread that has opened it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for end := time.Now().Add(clipboardWait); ; time.Sleep(clipboardPace) {
		ok, _, err := openClipboard.Call(0)
		if ok != 0 {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("copy: another program holds the clipboard: %w", err)
		}
	}
	defer closeClipboard.Call()
	emptyClipboard.Call()
	size := uintptr(len(data)) * 2
	memory, _, err := globalAlloc.Call(gmemMoveable, size)
	if memory == 0 {
		return fmt.Errorf("copy: %w", err)
	}
	place, _, err := globalLock.Call(memory)
	if place == 0 {
		globalFree.Call(memory)
		return fmt.Errorf("copy: %w", err)
	}
	// The memory belongs to the system, not to the garbage collector, so a number is a safe way to
	// hold its address.
	copy(unsafe.Slice(*(**uint16)(unsafe.Pointer(&place)), len(data)), data)
	globalUnlock.Call(memory)
	if ok, _, err := setClipboardData.Call(cfUnicodeText, memory); ok == 0 {
		globalFree.Call(memory)
		return fmt.Errorf("copy: %w", err)
	}
	return nil // the memory is the clipboard's now
}

// panelLook follows the taskbar's colour.
func (explorer) panelLook() Look {
	key, err := registry.OpenKey(registry.CURRENT_USER, `Software\Microsoft\Windows\CurrentVersion\Themes\Personalize`, registry.QUERY_VALUE)
	if err != nil {
		return LookAny
	}
	defer key.Close()
	light, _, err := key.GetIntegerValue("SystemUsesLightTheme")
	switch {
	case err != nil:
		return LookAny
	case light == 0:
		return LookDark
	default:
		return LookLight
	}
}

// comeBack makes the system start command again if it ends this program for an update, as Windows
// Installer may do through the Restart Manager. A program that ends for another reason stays ended:
// at login the Run key starts the tray.
func comeBack(command []string) error {
	const notAfterCrashHangOrReboot = 1 | 2 | 8
	args := make([]string, len(command)-1)
	for i, arg := range command[1:] {
		args[i] = syscall.EscapeArg(arg)
	}
	line, err := windows.UTF16PtrFromString(strings.Join(args, " "))
	if err != nil {
		return err
	}
	if result, _, _ := registerRestart.Call(uintptr(unsafe.Pointer(line)), notAfterCrashHangOrReboot); result != 0 {
		return fmt.Errorf("have the tray started again after an update: result %#x", result)
	}
	return nil
}

// openShared opens a file without preventing others from replacing it in the meantime.
func openShared(file string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(file)
	if err != nil {
		return nil, err
	}
	const all = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	handle, err := windows.CreateFile(name, windows.GENERIC_READ, all, nil, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: file, Err: err}
	}
	return os.NewFile(uintptr(handle), file), nil
}

// languages returns the person's languages, in order of preference.
func languages() []string {
	names, err := windows.GetUserPreferredUILanguages(windows.MUI_LANGUAGE_NAME)
	if err != nil {
		return nil
	}
	return names
}

// escapeLabel prevents an ampersand from being interpreted as a mnemonic marker.
func escapeLabel(s string) string { return strings.ReplaceAll(s, "&", "&&") }
