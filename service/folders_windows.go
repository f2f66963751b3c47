package service

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"adit/internal/paths"
)

// The rights to the service's folders: the system and administrators have all rights, the service
// may write. Everybody may enter the first folder but see nothing in it, and may read the contents
// of the other.
const (
	rightsToState = "D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;LS)(A;;0x1200a9;;;BU)"
	rightsToRun   = "D:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;LS)(A;OICI;0x1200a9;;;BU)"
)

// makeFolders makes the service's folder, which only the system, administrators and the service may
// enter, and inside it the one where everybody may read how to reach the daemon.
func makeFolders() error {
	state := paths.Service().State
	if err := os.MkdirAll(filepath.Dir(state), 0o755); err != nil {
		return err
	}
	for _, folder := range []struct{ path, rights string }{{state, rightsToState}, {paths.Public(), rightsToRun}} {
		if err := makeFolder(folder.path, folder.rights); err != nil {
			return fmt.Errorf("make %s: %w", folder.path, err)
		}
	}
	return nil
}

// makeFolder makes a folder that has its rights from the first moment, or sets them on an existing
// one. Everybody may create folders in %ProgramData%, so an existing one may belong to anybody: its
// creator could grant themself the right to everything that is put there, and a link would cause
// the rights of its target to be changed.
func makeFolder(path, rights string) error {
	sd, err := windows.SecurityDescriptorFromString("O:BA" + rights)
	if err != nil {
		return fmt.Errorf("read the rights: %w", err)
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	attributes := windows.SecurityAttributes{SecurityDescriptor: sd}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	err = windows.CreateDirectory(name, &attributes)
	if !errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		return err
	}
	// Use the handle and not the name, which may come to mean another folder.
	folder, err := windows.CreateFile(name, windows.READ_CONTROL|windows.WRITE_DAC|windows.WRITE_OWNER,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(folder) }() // nothing was written by it
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(folder, &info); err != nil {
		return err
	}
	if info.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0 || info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY == 0 {
		return errors.New("it is there already and is no folder: remove it first")
	}
	if err := checkMaker(folder); err != nil {
		return err
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return err
	}
	dacl, _, err := sd.DACL()
	if err != nil {
		return err
	}
	return windows.SetSecurityInfo(folder, windows.SE_FILE_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, owner, nil, dacl, nil)
}

// checkMaker refuses a folder that was made by anybody but the system, an administrator, the
// service or whoever runs this.
func checkMaker(folder windows.Handle) error {
	sd, err := windows.GetSecurityInfo(folder, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("ask whose it is: %w", err)
	}
	owner, _, err := sd.Owner()
	if err != nil || owner == nil {
		return fmt.Errorf("ask whose it is: %w", errors.Join(err, errors.New("it has no owner")))
	}
	for _, known := range []windows.WELL_KNOWN_SID_TYPE{windows.WinLocalSystemSid, windows.WinBuiltinAdministratorsSid, windows.WinLocalServiceSid} {
		if owner.IsWellKnown(known) {
			return nil
		}
	}
	if me, err := windows.GetCurrentProcessToken().GetTokenUser(); err == nil && owner.Equals(me.User.Sid) {
		return nil
	}
	who := owner.String()
	if account, domain, _, err := owner.LookupAccount(""); err == nil {
		who = domain + `\` + account
	}
	return fmt.Errorf("%s has made it, and could read the token that will be kept there: remove it first", who)
}

// checkProgram refuses a program that the service's account cannot read, or that ordinary users
// could replace to gain the service's rights.
func checkProgram(exe string) error {
	const advice = `: put it into a folder of its own under Program Files first`
	if users, err := windows.KnownFolderPath(windows.FOLDERID_UserProfiles, 0); err == nil && strings.HasPrefix(strings.ToLower(exe), strings.ToLower(users)+`\`) {
		return fmt.Errorf("a service cannot run a program from %s"+advice, users)
	}
	for _, path := range []string{exe, filepath.Dir(exe)} {
		sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
		if err != nil {
			return fmt.Errorf("ask who may change %s: %w", path, err)
		}
		open, err := openToAll(sd)
		if err != nil {
			return fmt.Errorf("ask who may change %s: %w", path, err)
		}
		if open {
			return fmt.Errorf("ordinary users may change %s, and would get the service's rights"+advice, path)
		}
	}
	return nil
}

// openToAll reports whether a descriptor lets ordinary users change what it
// protects.
func openToAll(sd *windows.SECURITY_DESCRIPTOR) (bool, error) {
	const change = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | 0x40 /* FILE_DELETE_CHILD */ |
		windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER | windows.GENERIC_WRITE | windows.GENERIC_ALL
	dacl, _, err := sd.DACL()
	if errors.Is(err, windows.ERROR_OBJECT_NOT_FOUND) || err == nil && dacl == nil {
		return true, nil // without a list everybody may do everything
	}
	if err != nil {
		return false, err
	}
	for i := range uint32(dacl.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(dacl, i, &ace); err != nil {
			return false, err
		}
		if ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || ace.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0 || ace.Mask&change == 0 {
			continue
		}
		sid := (*windows.SID)(unsafe.Pointer(&ace.SidStart))
		for _, everybody := range []windows.WELL_KNOWN_SID_TYPE{windows.WinWorldSid, windows.WinAuthenticatedUserSid, windows.WinBuiltinUsersSid, windows.WinInteractiveSid} {
			if sid.IsWellKnown(everybody) {
				return true, nil
			}
		}
	}
	return false, nil
}
