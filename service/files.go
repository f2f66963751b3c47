package service

import (
	_ "embed"
	"strings"
)

var (
	//go:embed files/adit.service
	systemdUnit string
	//go:embed files/adit.openrc
	openrcScript string
	//go:embed files/adit.sysv
	sysvScript string
	//go:embed files/adit.plist
	launchdPlist string
)

// PackagedProgram is where Linux packages install the program.
const PackagedProgram = "/usr/bin/adit"

// SystemdUnit returns the unit that runs exe, both for `adit service install` and for packages.
func SystemdUnit(exe string) string {
	// systemd interprets quotes, escapes and % in ExecStart.
	quoted := exe
	if strings.ContainsAny(exe, " \t'\"\\%$") {
		r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`)
		quoted = `"` + r.Replace(exe) + `"`
	}
	return strings.ReplaceAll(systemdUnit, "@EXEC@", quoted)
}

// OpenRCScript returns the OpenRC script that runs exe.
func OpenRCScript(exe string) string {
	if strings.ContainsFunc(exe, func(r rune) bool { return !strings.ContainsRune(plainLetters, r) }) {
		// OpenRC makes the shell evaluate the variable's value once more.
		exe = "'" + strings.ReplaceAll(exe, "'", `'\''`) + "'"
	}
	return strings.ReplaceAll(openrcScript, "@EXEC@", shellQuoted(exe))
}

// plainLetters are the characters in a path that no shell interprets.
const plainLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-"

// packageMark appears in the init scripts that a package installs, but not in ours.
const packageMark = "# This file belongs to the adit package."

// PackagedScript marks an init script as belonging to a package.
func PackagedScript(script string) string {
	head, rest, _ := strings.Cut(script, "\n")
	return head + "\n" + packageMark + "\n" + rest
}

// SysVScript returns the System V init script that runs exe.
func SysVScript(exe string) string {
	return strings.ReplaceAll(sysvScript, "@EXEC@", shellQuoted(exe))
}

// LaunchdPlist returns the launch daemon that runs exe.
func LaunchdPlist(exe string) string {
	r := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	return strings.ReplaceAll(launchdPlist, "@EXEC@", r.Replace(exe))
}

// shellQuoted escapes what is special between double quotes in a shell.
func shellQuoted(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(s)
}
