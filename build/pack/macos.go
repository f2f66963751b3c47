package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"adit/build/macpkg"
	"adit/service"
)

// macPackage makes the installer package for both kinds of Mac: the app, the launch daemon and the
// tray's launch agent.
func (p *packer) macPackage(context.Context) error {
	var slicesOf [][]byte
	if len(p.archesOn("darwin")) == 0 {
		return nil
	}
	for _, arch := range slices.Sorted(slices.Values(p.archesOn("darwin"))) {
		data, err := os.ReadFile(p.exe("darwin", arch))
		if err != nil {
			return err
		}
		slicesOf = append(slicesOf, data)
	}
	program, err := macpkg.Universal(slicesOf...)
	if err != nil {
		return fmt.Errorf("join the programs: %w", err)
	}
	const app = "Applications/Adit.app/Contents/"
	files := []macpkg.File{
		{Path: app + "MacOS/adit", Mode: 0o755, GID: 80, Data: program},
		{Path: app + "PkgInfo", Mode: 0o644, GID: 80, Data: []byte("APPL????")},
		{Path: "Library/LaunchDaemons/" + service.Label + ".plist", Mode: 0o644, Data: []byte(service.LaunchdPlist("/" + app + "MacOS/adit"))},
	}
	for _, f := range []struct {
		from, to string
		mode     uint32
		gid      uint32
	}{
		{"build/macos/Info.plist", app + "Info.plist", 0o644, 80},
		{"build/macos/uninstall.command", app + "Resources/uninstall.command", 0o755, 80},
		{"build/icons/adit.icns", app + "Resources/adit.icns", 0o644, 80},
		{"build/macos/dev.adit.tray.plist", "Library/LaunchAgents/dev.adit.tray.plist", 0o644, 0},
	} {
		data, err := os.ReadFile(filepath.Join(p.root, f.from))
		if err != nil {
			return err
		}
		if filepath.Ext(f.from) != ".icns" {
			data = []byte(p.fill(string(data), nil))
		}
		files = append(files, macpkg.File{Path: f.to, Mode: f.mode, GID: f.gid, Data: data})
	}
	tree := macpkg.NewTree(files)
	var scripts []macpkg.File
	for _, name := range []string{"preinstall", "postinstall"} {
		data, err := os.ReadFile(filepath.Join(p.root, "build/macos", name))
		if err != nil {
			return err
		}
		scripts = append(scripts, macpkg.File{Path: name, Mode: 0o755, Data: data})
	}
	payload, err := tree.Archive(p.release.Time, p.level())
	if err != nil {
		return err
	}
	scriptArchive, err := macpkg.NewTree(scripts).Archive(p.release.Time, p.level())
	if err != nil {
		return err
	}
	bom, err := tree.BOM(macpkg.Seconds(p.release.Time.Unix()))
	if err != nil {
		return err
	}
	count, size := tree.Size()
	sizes := map[string]string{"COUNT": strconv.Itoa(count), "KBYTES": strconv.FormatInt((size+1023)/1024, 10)}
	text := func(name string) ([]byte, error) {
		data, err := os.ReadFile(filepath.Join(p.root, "build/macos", name))
		return []byte(p.fill(string(data), sizes)), err
	}
	info, err := text("PackageInfo")
	if err != nil {
		return err
	}
	distribution, err := text("Distribution")
	if err != nil {
		return err
	}
	archive, err := macpkg.Xar([]macpkg.Member{
		{Name: "Distribution", Data: distribution},
		{Name: "adit.pkg", Members: []macpkg.Member{
			{Name: "Bom", Data: bom}, {Name: "PackageInfo", Data: info}, {Name: "Payload", Data: payload}, {Name: "Scripts", Data: scriptArchive},
		}},
	}, p.release.Time)
	if err != nil {
		return err
	}
	name := "adit-" + p.release.Version + ".pkg"
	log.Printf("UNSIGNED: %s (signing needs Apple's own tools; see docs/install.md)", name)
	p.add(name)
	return os.WriteFile(filepath.Join(p.out, name), archive, 0o644)
}
