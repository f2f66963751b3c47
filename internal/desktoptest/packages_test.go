package desktoptest

import (
	"bytes"
	"crypto/sha256"
	"debug/macho"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
)

// kinds are all results.
const kinds = "archive,deb,rpm,apk,archlinux,nsis,msi,pkg"

// pace compresses little or not at all, which takes seconds. With
// ADIT_PACK_FULL=1 all is compressed as for a release, which takes minutes.
var pace = func() string {
	if os.Getenv("ADIT_PACK_FULL") == "1" {
		return "-quick=false"
	}
	return "-quick"
}()

func TestLinuxPackagesAreWellFormed(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	for _, tool := range []string{"dpkg-deb", "desktop-file-validate", "appstreamcli", "lintian", "rpm", "tar"} {
		require.Tool(t, tool)
	}
	dir := results(t, firstVersion)
	deb := one(t, dir, "*-amd64.deb")
	root := filepath.Join(t.TempDir(), "root")
	must(t, patience, nil, "dpkg-deb", "-x", deb, root)
	must(t, patience, nil, "desktop-file-validate", root+"/usr/share/applications/adit.desktop", root+"/etc/xdg/autostart/adit-tray.desktop")
	must(t, patience, nil, "appstreamcli", "validate", "--no-net", root+"/usr/share/metainfo/dev.adit.adit.metainfo.xml")
	out, err := command(t, 10*time.Minute, nil, "lintian", "--allow-root", "--fail-on", "error", deb)
	if err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
	t.Logf("lintian: %s", out)
	if out := must(t, patience, nil, root+"/usr/bin/adit", "version"); !strings.Contains(out, "0.1.0") {
		t.Errorf("version: %s", out)
	}
	listing := must(t, patience, nil, "rpm", "-qlp", "--nosignature", one(t, dir, "*-amd64.rpm"))
	apk := must(t, patience, nil, "tar", "-tzf", one(t, dir, "*-amd64.apk"))
	for _, want := range []string{"/usr/bin/adit", "/usr/lib/systemd/system/adit.service", "/etc/xdg/autostart/adit-tray.desktop", "/usr/share/man/man1/adit.1.gz"} {
		if !strings.Contains(listing, want) {
			t.Errorf("the rpm lacks %s", want)
		}
		if !strings.Contains(apk, strings.TrimPrefix(want, "/")) {
			t.Errorf("the apk lacks %s", want)
		}
	}
	if !strings.Contains(apk, "etc/init.d/adit") || strings.Contains(listing, "/etc/init.d/adit") {
		t.Error("the OpenRC script belongs into the apk alone")
	}
	bill, err := os.ReadFile(one(t, dir, "*.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var materials struct {
		Format     string `json:"bomFormat"`
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(bill, &materials); err != nil || materials.Format != "CycloneDX" || len(materials.Components) < 3 {
		t.Errorf("bill of materials: %v, %d components", err, len(materials.Components))
	}
	must(t, patience, nil, "sh", "-c", "cd "+dir+" && sha256sum -c --quiet SHA256SUMS")
	for _, arch := range []string{"amd64", "arm64"} {
		for _, pattern := range []string{"*-linux-%s.tar.gz", "*-darwin-%s.tar.gz", "*-windows-%s.zip", "*-%s.deb", "*-%s.rpm", "*-%s.apk", "*-%s.pkg.tar.zst"} {
			one(t, dir, fmt.Sprintf(pattern, arch))
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "adit-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			t.Logf("%s: %.1f MiB", filepath.Base(file), float64(info.Size())/(1<<20))
		}
	}
}

func TestPackTwiceGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	for _, tool := range []string{"msiinfo"} {
		require.Tool(t, tool)
	}
	first := results(t, firstVersion)
	second := pack(t, firstVersion, "-only", kinds, pace, "-gpg-key", "")
	summary := must(t, patience, nil, "msiinfo", "suminfo", one(t, second, "*.msi"))
	if !strings.Contains(summary, "Installer") || strings.Contains(summary, "1601") {
		t.Errorf("the MSI's summary: %s", summary)
	}
	files, err := filepath.Glob(filepath.Join(second, "adit-*"))
	if err != nil || len(files) < 23 {
		t.Fatalf("got %v, error %v", files, err)
	}
	for _, file := range files {
		a, errA := os.ReadFile(filepath.Join(first, filepath.Base(file)))
		b, errB := os.ReadFile(file)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %x and %x", filepath.Base(file), sha256.Sum256(a), sha256.Sum256(b))
		}
		if strings.HasSuffix(file, "-setup.exe") && pace != "-quick" && len(b) > 16<<20 {
			t.Errorf("%s has %d bytes, more than 16 MiB", filepath.Base(file), len(b))
		}
	}
}

func TestMacPackageIsWellFormed(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	for _, tool := range []string{"7z", "bsdtar"} {
		require.Tool(t, tool)
	}
	file := one(t, results(t, firstVersion), "*.pkg")
	must(t, patience, nil, "7z", "t", file)
	root := t.TempDir()
	must(t, patience, nil, "bsdtar", "-C", root, "-xf", file)
	payload := filepath.Join(root, "payload")
	if err := os.Mkdir(payload, 0o755); err != nil {
		t.Fatal(err)
	}
	listing := must(t, patience, nil, "bsdtar", "-tvf", filepath.Join(root, "adit.pkg/Payload"), "--numeric-owner")
	for line := range strings.Lines(listing) {
		fields := strings.Fields(line)
		path := fields[len(fields)-1]
		want := "80"
		if strings.HasPrefix(path, "./Library") {
			want = "0"
		}
		if fields[2] != "0" || fields[3] != want {
			t.Errorf("%s belongs to %s:%s, want 0:%s", path, fields[2], fields[3], want)
		}
	}
	must(t, patience, nil, "bsdtar", "-C", payload, "--no-same-owner", "-xf", filepath.Join(root, "adit.pkg/Payload"))
	fat, err := macho.OpenFat(filepath.Join(payload, "Applications/Adit.app/Contents/MacOS/adit"))
	if err != nil {
		t.Fatal(err)
	}
	defer fat.Close()
	if len(fat.Arches) != 2 || fat.Arches[0].Cpu != macho.CpuAmd64 || fat.Arches[1].Cpu != macho.CpuArm64 {
		t.Errorf("got processors %v", fat.Arches)
	}
	const codeSignature = 0x1d // LC_CODE_SIGNATURE: without one, Apple silicon runs nothing
	signed := false
	for _, load := range fat.Arches[1].Loads {
		raw := load.Raw()
		signed = signed || fat.Arches[1].ByteOrder.Uint32(raw) == codeSignature
	}
	if !signed {
		t.Error("the slice for Apple silicon has no signature")
	}
	for _, plist := range []string{"Library/LaunchDaemons/dev.adit.daemon.plist", "Library/LaunchAgents/dev.adit.tray.plist", "Applications/Adit.app/Contents/Info.plist"} {
		text, err := os.ReadFile(filepath.Join(payload, plist))
		if err != nil || !strings.Contains(string(text), "</plist>") || strings.Contains(string(text), "@") && strings.Contains(string(text), "@EXEC@") {
			t.Errorf("%s: %v", plist, err)
		}
	}
	bom, err := os.ReadFile(filepath.Join(root, "adit.pkg/Bom"))
	if err != nil || !strings.HasPrefix(string(bom), "BOMStore") {
		t.Errorf("the bill of materials: %v", err)
	}
	info, err := os.Stat(file)
	if err == nil {
		t.Logf("%.1f MiB", float64(info.Size())/(1<<20))
	}
}
