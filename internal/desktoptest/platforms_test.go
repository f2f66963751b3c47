package desktoptest

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"adit/internal/require"
)

// TestPackagesAreForTheirProcessor reads what each Linux package says it is for,
// and that the program in it is.
func TestPackagesAreForTheirProcessor(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	for _, tool := range []string{"dpkg-deb", "rpm", "bsdtar"} {
		require.Tool(t, tool)
	}
	dir := results(t, firstVersion)
	sums := string(read(t, filepath.Join(dir, "SHA256SUMS")))
	for arch, want := range map[string]struct {
		deb, rpm, apk, archlinux string
		machine                  elf.Machine
		class                    elf.Class
		goarch, goarm            string
	}{
		"amd64": {"amd64", "x86_64", "x86_64", "x86_64", elf.EM_X86_64, elf.ELFCLASS64, "amd64", ""},
		"arm64": {"arm64", "aarch64", "aarch64", "aarch64", elf.EM_AARCH64, elf.ELFCLASS64, "arm64", ""},
		"armv7": {"armhf", "armv7hl", "armv7", "armv7h", elf.EM_ARM, elf.ELFCLASS32, "arm", "7"},
	} {
		archive := one(t, dir, "*-linux-"+arch+".tar.gz")
		program := programIn(t, archive)
		file, err := elf.NewFile(bytes.NewReader(program))
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
		if file.Machine != want.machine || file.Class != want.class || file.Type != elf.ET_EXEC {
			t.Errorf("%s: got a program for %v, %v, %v; want %v, %v", archive, file.Machine, file.Class, file.Type, want.machine, want.class)
		}
		built, err := buildinfo.Read(bytes.NewReader(program))
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
		if goarch, goarm := setting(built, "GOARCH"), setting(built, "GOARM"); goarch != want.goarch || goarm != want.goarm {
			t.Errorf("%s: built with GOARCH=%s GOARM=%s, want %s and %s", archive, goarch, goarm, want.goarch, want.goarm)
		}
		for _, p := range []struct{ kind, want string }{
			{"deb", want.deb}, {"rpm", want.rpm}, {"apk", want.apk}, {"pkg.tar.zst", want.archlinux},
		} {
			file := one(t, dir, "*-"+arch+"."+p.kind)
			got, packed := packageFor(t, p.kind, file)
			if got != p.want {
				t.Errorf("%s is for %q, want %q", filepath.Base(file), got, p.want)
			}
			if !bytes.Equal(packed, program) {
				t.Errorf("%s has another program than the archive", filepath.Base(file))
			}
			if !strings.Contains(sums, "  "+filepath.Base(file)+"\n") {
				t.Errorf("SHA256SUMS lacks %s", filepath.Base(file))
			}
		}
	}
	for _, pattern := range []string{"*darwin-armv7*", "*windows-armv7*"} {
		if files, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(files) > 0 {
			t.Errorf("got %v, %v; want programs for ARMv7 on Linux alone", files, err)
		}
	}
}

// packageFor returns the architecture that a package is for, and its program.
func packageFor(t *testing.T, kind, file string) (arch string, program []byte) {
	t.Helper()
	root := t.TempDir()
	switch kind {
	case "deb":
		arch = must(t, patience, nil, "dpkg-deb", "-f", file, "Architecture")
		must(t, patience, nil, "dpkg-deb", "-x", file, root)
	case "rpm":
		arch = must(t, patience, nil, "rpm", "-qp", "--nosignature", "--qf", "%{ARCH}", file)
		must(t, patience, nil, "bsdtar", "-C", root, "-xf", file)
	default:
		must(t, patience, nil, "bsdtar", "-C", root, "-xf", file)
		for line := range strings.Lines(string(read(t, filepath.Join(root, ".PKGINFO")))) {
			if key, value, _ := strings.Cut(strings.TrimSpace(line), " = "); key == "arch" {
				arch = value
			}
		}
	}
	program, err := os.ReadFile(filepath.Join(root, "usr/bin/adit"))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return arch, program
}

func setting(built *debug.BuildInfo, key string) string {
	for _, s := range built.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
