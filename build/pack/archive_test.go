package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestLinksOfAnArchiveLeadSomewhere makes an archive and follows each link in its
// documents: to a heading of the same document, to a file of the archive, or out
// to the web.
func TestLinksOfAnArchiveLeadSomewhere(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	p := &packer{root: root, out: t.TempDir(), work: t.TempDir(), arches: []string{"amd64"}, quick: true, release: release{Version: "1.2.3", Time: time.Unix(0, 0)}}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		exe := p.exe(goos, "amd64")
		if err := os.MkdirAll(filepath.Dir(exe), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{exe, trayFile(exe)} {
			if err := os.WriteFile(file, []byte("a program"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.archives(t.Context()); err != nil {
		t.Fatal(err)
	}
	packed := unpacked(t, filepath.Join(p.out, "adit-1.2.3-linux-amd64.tar.gz"))
	documents := 0
	for name, text := range packed {
		if path.Ext(name) != ".md" {
			continue
		}
		documents++
		headings := map[string]bool{}
		for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
			headings["#"+strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(heading[1], ",", "")), " ", "-")] = true
		}
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target := found[2]
			_, there := packed[path.Join(path.Dir(name), target)]
			if !there && !headings[target] && !strings.HasPrefix(target, "https://") {
				t.Errorf("%s: the link %s leads nowhere", name, found[0])
			}
		}
	}
	if documents == 0 {
		t.Error("the archive has no document")
	}
}

func unpacked(t *testing.T, archive string) map[string]string {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zr, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for tr := tar.NewReader(zr); ; {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}

func TestDocumentAloneNamesWhatItCannotLinkTo(t *testing.T) {
	got := string(alone([]byte("See [a](b.md#c), [d](#e), [f](../README.md), [g](https://example.com)."), "docs"))
	want := "See a (`docs/b.md` in adit's sources), [d](#e), f (`README.md` in adit's sources), [g](https://example.com)."
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
