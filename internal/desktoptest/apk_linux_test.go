package desktoptest

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"adit/internal/require"
)

// apkSegment is one of the gzip streams that an apk consists of.
type apkSegment struct {
	packed  []byte
	entries map[string]*tar.Header
	text    map[string]string // of what is small
}

// apkSegments takes an apk apart as apk-tools do: by its gzip streams.
func apkSegments(t *testing.T, file string) []apkSegment {
	t.Helper()
	data := read(t, file)
	rest := bufio.NewReader(bytes.NewReader(data)) // gzip reads no further in it than its stream
	var all []apkSegment
	for start := 0; start < len(data); {
		zr, err := gzip.NewReader(rest)
		if err != nil {
			t.Fatal(err)
		}
		zr.Multistream(false)
		plain, err := io.ReadAll(zr)
		if err != nil {
			t.Fatal(err)
		}
		left, err := io.ReadAll(rest)
		if err != nil {
			t.Fatal(err)
		}
		end := len(data) - len(left)
		rest = bufio.NewReader(bytes.NewReader(left))
		s := apkSegment{packed: data[start:end], entries: map[string]*tar.Header{}, text: map[string]string{}}
		start = end
		for tr := tar.NewReader(bytes.NewReader(plain)); ; {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // the first has no end mark
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			s.entries[h.Name] = h
			if h.Size < 1<<16 {
				text, err := io.ReadAll(tr)
				if err != nil {
					t.Fatal(err)
				}
				s.text[h.Name] = string(text)
			}
		}
		all = append(all, s)
	}
	return all
}

// TestAlpinePackage holds the form of the apk, and runs its scripts in the order
// and with the arguments that apk-tools give them. They are not here themselves.
func TestAlpinePackage(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	segments := apkSegments(t, one(t, results(t, firstVersion), "*-amd64.apk"))
	if len(segments) != 2 {
		t.Fatalf("got %d segments, want control and data", len(segments))
	}
	control, data := segments[0], segments[1]
	info := map[string]string{}
	for line := range strings.Lines(control.text[".PKGINFO"]) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		if !ok && !strings.HasPrefix(line, "#") {
			t.Errorf("this line of .PKGINFO is not key and value: %q", line)
		}
		info[key] = value
	}
	sum := sha256.Sum256(data.packed)
	for key, want := range map[string]string{
		"pkgname": "adit", "pkgver": firstVersion, "arch": "x86_64",
		"pkgdesc": "publish services on this machine at public URLs", "datahash": hex.EncodeToString(sum[:]),
	} {
		if info[key] != want {
			t.Errorf("%s: got %q, want %q", key, info[key], want)
		}
	}
	for name, mode := range map[string]int64{"usr/bin/adit": 0o755, "etc/init.d/adit": 0o755, "usr/lib/systemd/system/adit.service": 0o644} {
		h := data.entries[name]
		if h == nil || h.Mode&0o777 != mode || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s: got %+v, want mode %o of root's", name, h, mode)
		}
	}
	scripts := []string{".post-install", ".post-upgrade", ".pre-deinstall", ".post-deinstall"}
	for _, name := range scripts {
		if h := control.entries[name]; h == nil || h.Mode&0o111 == 0 || !h.ModTime.Equal(data.entries["usr/bin/adit"].ModTime) {
			t.Fatalf("%s: got %+v, want a program with the release's time", name, h)
		}
	}
	apkScriptsUnderOpenRC(t, control, data.text["etc/init.d/adit"])
}

func apkScriptsUnderOpenRC(t *testing.T, control apkSegment, service string) {
	t.Helper()
	r := newScriptRoot(t, "sh")
	for _, name := range []string{"addgroup", "adduser", "rc-update"} {
		r.write("/bin/"+name, "#!/bin/sh\necho \""+name+" $*\" >>/asked\n", 0o755)
	}
	r.write("/bin/rc-service", "#!/bin/sh\necho \"rc-service $*\" >>/asked\ncase \"$2\" in status) [ -e /active ] ;; esac\n", 0o755)
	r.write("/sbin/openrc-run", "#!/bin/sh\n", 0o755)
	r.write("/run/openrc/.keep", "", 0o644)
	r.write("/etc/init.d/adit", service, 0o755)
	r.write("/var/lib/adit/state", "", 0o600)
	script := func(name string, args ...string) (said, asked string) {
		t.Helper()
		r.write("/"+name, control.text[name], 0o755)
		return r.run(require.Tool(t, "chroot"), append([]string{r.dir, "/" + name}, args...)...)
	}
	const users = "addgroup -S adit, adduser -S -D -H -h /var/lib/adit -s /bin/false -G adit adit, "

	said, asked := script(".post-install", firstVersion)
	r.wantAsked("installed", asked, users+"rc-update add adit default, rc-service adit restart")
	if !strings.Contains(said, hint) {
		t.Errorf("installed: got %q, want what to do next", said)
	}
	r.write("/active", "", 0o644)
	said, asked = script(".post-upgrade", secondVersion, firstVersion)
	r.wantAsked("upgraded while it runs", asked, users+"rc-service adit status, rc-service adit restart")
	if said != "" {
		t.Errorf("upgraded: got %q, want nothing for newcomers", said)
	}
	r.remove("/active")
	_, asked = script(".post-upgrade", secondVersion, firstVersion)
	r.wantAsked("upgraded while it is stopped", asked, users+"rc-service adit status")
	_, asked = script(".pre-deinstall", secondVersion)
	r.wantAsked("before its removal", asked, "rc-service adit stop, rc-update delete adit")
	_, asked = script(".post-deinstall", secondVersion)
	r.wantAsked("after its removal", asked, "")
	if !r.exists("/var/lib/adit/state") {
		t.Error("removed: the state went with the package")
	}
}
