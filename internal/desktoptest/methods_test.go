package desktoptest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"adit/internal/require"
)

// The names of functions are in a program without symbols, too, for stack
// traces. byName are those that call a method by its name or number: where one is,
// the linker could leave out no exported method. always is in every program.
var (
	byName = []string{"reflect.Value.MethodByName\x00", "reflect.Value.Method\x00"}
	always = "reflect.Value.Set\x00"
)

// TestProgramsHaveOnlyWhatTheyUse reads the programs that are installed. On
// Linux the tray's library keeps all methods: docs/decisions/0012 tells why.
func TestProgramsHaveOnlyWhatTheyUse(t *testing.T) {
	require.Opted(t)
	for _, tool := range []string{"wixl", "makensis"} {
		require.Tool(t, tool)
	}
	dir := everything(t)
	for _, arch := range []string{"amd64", "arm64"} {
		for pattern, program := range map[string]func(*testing.T, string) []byte{
			"*-windows-" + arch + ".zip": fromZip, "*-darwin-" + arch + ".tar.gz": fromTar,
		} {
			file := one(t, dir, pattern)
			data := program(t, file)
			if !bytes.Contains(data, []byte(always)) {
				t.Errorf("%s: no names of functions in a program of %d bytes", filepath.Base(file), len(data))
			}
			for _, name := range byName {
				if bytes.Contains(data, []byte(name)) {
					t.Errorf("%s: %q is in the program, and so every exported method is", filepath.Base(file), name)
				}
			}
		}
	}
}

func fromZip(t *testing.T, file string) []byte {
	t.Helper()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		if filepath.Base(f.Name) != "adit.exe" {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	t.Fatalf("%s has no adit.exe", file)
	return nil
}

func fromTar(t *testing.T, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(unzipped)
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("%s has no adit", file)
		}
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(head.Name) != "adit" || head.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
}
