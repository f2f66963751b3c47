package main

import (
	"context"
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"

	"adit/internal/windowed"
)

// windowsInstallers makes the setup program, which contains both architectures, and one MSI per
// architecture for managed machines.
func (p *packer) windowsInstallers(ctx context.Context) error {
	dirs := map[string]string{}
	for _, arch := range p.archesOn("windows") {
		dirs[arch] = filepath.Dir(p.exe("windows", arch))
	}
	if len(dirs) == 0 {
		return nil
	}
	icon, license := filepath.Join(p.root, "build/icons/adit.ico"), filepath.Join(p.root, "LICENSE")
	if p.wants("nsis") {
		name := "adit-" + p.release.Version + "-setup.exe"
		out := filepath.Join(p.out, name)
		amd64, arm64 := dirs["amd64"], dirs["arm64"]
		if arm64 == "" { // a build for tests alone
			arm64 = amd64
		}
		args := []string{
			"-V2", "-INPUTCHARSET", "UTF8", "-XTarget amd64-unicode",
			"-DVERSION=" + p.release.Version, "-DQUAD=" + p.release.numbers() + ".0", "-DAMD64=" + amd64, "-DARM64=" + arm64,
			"-DICON=" + icon, "-DLICENSE=" + license, "-DOUT=" + out,
		}
		if p.quick {
			args = append(args, "-DQUICK")
		}
		if err := p.run(ctx, "makensis", append(args, filepath.Join(p.root, "build/windows/adit.nsi"))...); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
		if err := p.sign.windows(ctx, p, out); err != nil {
			return err
		}
		p.add(name)
	}
	if !p.wants("msi") {
		return nil
	}
	for _, arch := range p.archesOn("windows") {
		wixArch := map[string]string{"amd64": "x64", "arm64": "arm64"}[arch]
		if arch != "amd64" {
			continue // wixl knows no arm64; the setup program serves it
		}
		name := "adit-" + p.release.Version + "-" + wixArch + ".msi"
		out := filepath.Join(p.out, name)
		// wixl only accepts paths that begin at its source.
		dir, err := filepath.Rel(p.work, dirs[arch])
		if err != nil {
			return err
		}
		if err := copyFile(icon, filepath.Join(p.work, "adit.ico")); err != nil {
			return err
		}
		source, err := p.write(p.work, "windows/adit.wxs", map[string]string{
			"ICON": "adit.ico", "DIR": dir, "NEXT": p.release.after(),
			"PRODUCT": p.identity("product", wixArch), "PACKAGE": p.identity("package", wixArch),
		})
		if err != nil {
			return err
		}
		if err := p.run(ctx, "wixl", "-a", wixArch, "-o", out, source); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
		if err := steadyFile(out, p.identity("package", wixArch), p.release.Time); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
		if err := p.sign.windows(ctx, p, out); err != nil {
			return err
		}
		p.add(name)
	}
	return nil
}

func trayFile(exe string) string { return filepath.Join(filepath.Dir(exe), "adit-tray.exe") }

// trayProgram returns the same program as exe without a console window.
func (p *packer) trayProgram(exe string) (string, error) {
	data, err := os.ReadFile(exe)
	if err != nil {
		return "", err
	}
	if data, err = windowed.Program(data); err != nil {
		return "", fmt.Errorf("%s: %w", exe, err)
	}
	tray := trayFile(exe)
	return tray, os.WriteFile(tray, data, 0o755)
}

// identity returns a GUID that depends only on the release and its arguments (RFC 9562, version 5).
func (p *packer) identity(what, arch string) string {
	sum := sha1.Sum([]byte("dev.adit " + what + " " + arch + " " + p.release.Version + " " + p.release.Commit))
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x50
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
