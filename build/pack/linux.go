package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"adit/service"
)

// content is a file of a Linux package, in nfpm's format.
type content struct {
	Src  string    `json:"src,omitempty"`
	Dst  string    `json:"dst"`
	Type string    `json:"type,omitempty"`
	Only string    `json:"packager,omitempty"`
	Info *fileInfo `json:"file_info,omitempty"`
}

type fileInfo struct {
	Mode  int    `json:"mode,omitempty"`
	MTime string `json:"mtime,omitempty"`
}

// linuxPackages makes deb, rpm, apk and Arch packages.
func (p *packer) linuxPackages(ctx context.Context) error {
	for _, arch := range p.arches {
		contents, err := p.linuxContents(ctx, p.exe("linux", arch), filepath.Join(p.work, "linux-"+arch, "files"))
		if err != nil {
			return err
		}
		for _, kind := range []string{"deb", "rpm", "apk", "archlinux"} {
			if !p.wants(kind) {
				continue
			}
			name := fmt.Sprintf("adit-%s-%s.%s", p.release.Version, arch, map[string]string{"archlinux": "pkg.tar.zst"}[kind])
			if kind != "archlinux" {
				name += kind
			}
			config := filepath.Join(p.work, "nfpm-"+arch+"-"+kind+".json")
			if err := p.writeNFPM(config, packageArch(arch), kind, contents); err != nil {
				return err
			}
			if err := p.tool(ctx, "nfpm", "package", "-f", config, "-p", kind, "-t", filepath.Join(p.out, name)); err != nil {
				return fmt.Errorf("make %s: %w", name, err)
			}
			p.add(name)
		}
	}
	return nil
}

// writeNFPM writes nfpm's configuration: JSON is YAML too.
func (p *packer) writeNFPM(file, arch, kind string, contents []content) error {
	const summary = "publish services on this machine at public URLs"
	description := "adit keeps one encrypted session with a relay, which gives the services of\nthis machine public addresses: HTTP, HTTPS, TLS, TCP and UDP. It runs as a\nservice, has a web page, and shows its state in the tray."
	switch kind {
	case "deb": // the summary is its first line
		description = summary + "\n" + description
	case "apk", "archlinux": // which have one line
		description = summary
	}
	dir, err := p.scripts()
	if err != nil {
		return err
	}
	script := func(name string) string { return filepath.Join(dir, name) }
	compression := "gzip:-1" // nfpm's own; the other two have no such setting
	if p.quick {
		compression = "gzip:1"
	}
	config := map[string]any{
		"name":           "adit",
		"arch":           arch,
		"platform":       "linux",
		"version":        p.release.Version,
		"version_schema": "semver",
		"section":        "net",
		"priority":       "optional",
		"maintainer":     "The adit authors <adit@localhost>",
		"vendor":         "The adit authors",
		"license":        "Apache-2.0",
		"description":    description,
		"mtime":          p.release.Time.Format(time.RFC3339),
		"contents":       contents,
		"scripts": map[string]any{
			"postinstall": script("postinstall.sh"), "preremove": script("preremove.sh"), "postremove": script("postremove.sh"),
		},
		"overrides": map[string]any{
			"deb": map[string]any{
				"recommends": []string{"xdg-utils", "xclip | wl-clipboard"},
				"suggests":   []string{"gnome-shell-extension-appindicator"},
				"scripts":    map[string]any{"preinstall": script("preinstall.sh")},
			},
			"rpm": map[string]any{"recommends": []string{"xdg-utils"}, "suggests": []string{"xclip", "wl-clipboard", "gnome-shell-extension-appindicator"}},
		},
		"apk":       map[string]any{"scripts": map[string]any{"postupgrade": script("postinstall.sh")}},
		"archlinux": map[string]any{"packager": "The adit authors", "scripts": map[string]any{"postupgrade": script("postinstall.sh")}},
		"deb":       map[string]any{"compression": compression},
		"rpm":       map[string]any{"compression": compression, "group": "Applications/Internet", "summary": strings.ToUpper(summary[:1]) + summary[1:], "buildhost": "localhost"},
	}
	data, err := json.MarshalIndent(config, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// scripts writes the packages' scripts with the release's time: in an apk they have the times of
// their files, which would be those of the checkout.
func (p *packer) scripts() (dir string, err error) {
	dir = filepath.Join(p.work, "scripts")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"preinstall.sh", "postinstall.sh", "preremove.sh", "postremove.sh"} {
		text, err := os.ReadFile(filepath.Join(p.root, "build/linux", name))
		if err != nil {
			return "", err
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o755); err != nil {
			return "", err
		}
		if err := os.Chtimes(file, p.release.Time, p.release.Time); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// linuxContents lists what a Linux package contains in addition to the program.
func (p *packer) linuxContents(ctx context.Context, exe, dir string) ([]content, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	mtime := p.release.Time.Format(time.RFC3339)
	contents := []content{{Src: exe, Dst: service.PackagedProgram, Info: &fileInfo{0o755, mtime}}}
	file := func(src, dst string) {
		contents = append(contents, content{Src: src, Dst: dst, Type: configType(dst), Info: &fileInfo{0o644, mtime}})
	}
	text := func(name, text, dst string, mode int, only string) error {
		src := filepath.Join(dir, name)
		contents = append(contents, content{Src: src, Dst: dst, Only: only, Type: configType(dst), Info: &fileInfo{mode, mtime}})
		return os.WriteFile(src, []byte(text), 0o644)
	}
	if err := text("adit.service", service.SystemdUnit(service.PackagedProgram), "/usr/lib/systemd/system/adit.service", 0o644, ""); err != nil {
		return nil, err
	}
	if err := text("adit.openrc", service.PackagedScript(service.OpenRCScript(service.PackagedProgram)), "/etc/init.d/adit", 0o755, "apk"); err != nil {
		return nil, err
	}
	for _, f := range []struct{ name, dst string }{
		{"linux/adit.desktop", "/usr/share/applications/adit.desktop"},
		{"linux/adit-tray.desktop", "/etc/xdg/autostart/adit-tray.desktop"},
		{"linux/dev.adit.adit.metainfo.xml", "/usr/share/metainfo/dev.adit.adit.metainfo.xml"},
		{"linux/copyright", "/usr/share/doc/adit/copyright"},
	} {
		src, err := p.write(dir, f.name, nil)
		if err != nil {
			return nil, err
		}
		file(src, f.dst)
	}
	overrides, err := p.write(dir, "linux/lintian-overrides", nil)
	if err != nil {
		return nil, err
	}
	contents = append(contents, content{Src: overrides, Dst: "/usr/share/lintian/overrides/adit", Only: "deb", Info: &fileInfo{0o644, mtime}})
	icons := filepath.Join(p.root, "build/icons")
	file(filepath.Join(icons, "adit.svg"), "/usr/share/icons/hicolor/scalable/apps/adit.svg")
	for _, size := range []string{"48", "128", "256"} {
		file(filepath.Join(icons, "adit-"+size+".png"), "/usr/share/icons/hicolor/"+size+"x"+size+"/apps/adit.png")
	}
	page, err := p.write(dir, "linux/adit.1", nil)
	if err != nil {
		return nil, err
	}
	manual, err := gzipped(page)
	if err != nil {
		return nil, err
	}
	file(manual, "/usr/share/man/man1/adit.1.gz")
	changelog := filepath.Join(dir, "changelog")
	if err := os.WriteFile(changelog, []byte(p.changelog()), 0o644); err != nil {
		return nil, err
	}
	if changelog, err = gzipped(changelog); err != nil {
		return nil, err
	}
	contents = append(contents, content{Src: changelog, Dst: "/usr/share/doc/adit/changelog.gz", Only: "deb", Info: &fileInfo{0o644, mtime}})
	return append(contents, p.completions(ctx, dir, mtime)...), nil
}

// configType keeps an administrator's changes of a file on an upgrade.
func configType(dst string) string {
	if strings.HasPrefix(dst, "/etc/") {
		return "config|noreplace"
	}
	return ""
}

// zshFolders are where zsh looks for completions from packages: Debian has its own folder.
var zshFolders = map[string]string{
	"deb": "/usr/share/zsh/vendor-completions",
	"rpm": "/usr/share/zsh/site-functions", "apk": "/usr/share/zsh/site-functions", "archlinux": "/usr/share/zsh/site-functions",
}

// completions runs the program itself, built for this machine, to get the shells' completions and
// its commands' manual pages. A program that has none prints none.
func (p *packer) completions(ctx context.Context, dir, mtime string) []content {
	exe := p.exe(hostOS, hostArch)
	var contents []content
	for shell, dst := range map[string]string{
		"bash": "/usr/share/bash-completion/completions/adit",
		"zsh":  "", // by the packager, below
		"fish": "/usr/share/fish/vendor_completions.d/adit.fish",
	} {
		out, err := output(ctx, exe, "completion", shell)
		if err != nil || len(out) < 100 {
			continue
		}
		src := filepath.Join(dir, "completion."+shell)
		if err := os.WriteFile(src, out, 0o644); err != nil {
			continue
		}
		if shell != "zsh" {
			contents = append(contents, content{Src: src, Dst: dst, Info: &fileInfo{0o644, mtime}})
			continue
		}
		for kind, dst := range zshFolders {
			contents = append(contents, content{Src: src, Dst: dst + "/_adit", Only: kind, Info: &fileInfo{0o644, mtime}})
		}
	}
	pages := filepath.Join(dir, "man")
	if _, err := output(ctx, exe, "man", pages); err == nil {
		files, _ := filepath.Glob(filepath.Join(pages, "adit-*.1")) // the pattern is well-formed
		for _, file := range files {
			packed, err := gzipped(file)
			if err != nil {
				continue
			}
			contents = append(contents, content{Src: packed, Dst: "/usr/share/man/man1/" + filepath.Base(packed), Info: &fileInfo{0o644, mtime}})
		}
	}
	sortContents(contents)
	return contents
}

func (p *packer) changelog() string {
	return fmt.Sprintf("adit (%s) unstable; urgency=medium\n\n  * Release %s, commit %s.\n\n -- The adit authors <adit@localhost>  %s\n",
		strings.Replace(p.release.Version, "-", "~", 1), p.release.Version, p.release.Commit, p.release.Time.Format(time.RFC1123Z))
}

// gzipped writes a compressed copy next to a file, without its name and time.
func gzipped(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return file + ".gz", writeFile(file+".gz", func(w io.Writer) error {
		zw, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := zw.Write(data); err != nil {
			return err
		}
		return zw.Close()
	})
}
