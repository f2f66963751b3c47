package main

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name string
	from string
	mode int64
}

// archives makes one archive per platform, for people who do not want an installer.
func (p *packer) archives(context.Context) error {
	instructions, err := p.instructions()
	if err != nil {
		return err
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, arch := range p.archesOn(goos) {
			exe := p.exe(goos, arch)
			base := fmt.Sprintf("adit-%s-%s-%s", p.release.Version, goos, arch)
			entries := []entry{
				{base + "/" + filepath.Base(exe), exe, 0o755},
				{base + "/LICENSE", filepath.Join(p.root, "LICENSE"), 0o644},
				{base + "/INSTALL.md", instructions, 0o644},
			}
			name, write := base+".tar.gz", writeTar
			if goos == "windows" {
				entries = append(entries, entry{base + "/adit-tray.exe", trayFile(exe), 0o755})
				name, write = base+".zip", writeZip
			}
			if err := writeFile(filepath.Join(p.out, name), func(w io.Writer) error { return write(w, entries, p.release.Time, p.level()) }); err != nil {
				return fmt.Errorf("write %s: %w", name, err)
			}
			p.add(name)
		}
	}
	return nil
}

// instructions writes a version of docs/install.md that can be read on its own, and returns the
// file.
func (p *packer) instructions() (string, error) {
	text, err := os.ReadFile(filepath.Join(p.root, "docs/install.md"))
	if err != nil {
		return "", err
	}
	file := filepath.Join(p.work, "INSTALL.md")
	return file, os.WriteFile(file, alone(text, "docs"), 0o644)
}

// link matches a link in a Markdown text to something that may lie next to it.
var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)

// alone replaces each link in a document of that folder to another file of the sources with the
// name of that file.
func alone(document []byte, folder string) []byte {
	return link.ReplaceAllFunc(document, func(found []byte) []byte {
		part := link.FindSubmatch(found)
		text, target := string(part[1]), string(part[2])
		if strings.HasPrefix(target, "#") || strings.Contains(target, ":") {
			return found
		}
		file, _, _ := strings.Cut(target, "#")
		return fmt.Appendf(nil, "%s (`%s` in adit's sources)", text, path.Join(folder, file))
	})
}

// level returns the compression level.
func (p *packer) level() int {
	if p.quick {
		return flate.BestSpeed
	}
	return flate.BestCompression
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func writeTar(w io.Writer, entries []entry, when time.Time, level int) error {
	zw, err := gzip.NewWriterLevel(w, level)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		data, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(data)), ModTime: when, Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
		if err := tw.WriteHeader(header); err != nil {
			return err
		}
		if _, err := tw.Write(data); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}

func writeZip(w io.Writer, entries []entry, when time.Time, level int) error {
	zw := zip.NewWriter(w)
	if level == flate.BestSpeed {
		zw.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, level) })
	}
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: when}
		header.SetMode(os.FileMode(e.mode))
		part, err := zw.CreateHeader(header)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		if _, err := part.Write(data); err != nil {
			return err
		}
	}
	return zw.Close()
}
