package update

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"debug/pe"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func keys(t *testing.T) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

// serve offers program as version 2.0.0.
func serve(t *testing.T, private ed25519.PrivateKey, program []byte, change func(*Manifest)) *httptest.Server {
	t.Helper()
	m := Manifest{Version: "2.0.0", Files: map[string]File{"linux/amd64": {URL: "adit", SHA256: fmt.Sprintf("%x", sha256.Sum256(program)), Size: int64(len(program))}}}
	if change != nil {
		change(&m)
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/release/manifest.json":
			w.Write(data)
		case "/release/manifest.json.sig":
			fmt.Fprintln(w, base64.StdEncoding.EncodeToString(ed25519.Sign(private, data)))
		case "/release/adit":
			w.Write(program)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestParseKey(t *testing.T) {
	public, _ := keys(t)
	whole := base64.StdEncoding.EncodeToString(public)
	for text, want := range map[string]bool{
		whole: true, " " + whole + "\n": true,
		"": false, whole[1:]: false, "a key": false, base64.StdEncoding.EncodeToString(public[1:]): false, base64.StdEncoding.EncodeToString(append(public, 1)): false,
	} {
		key, err := ParseKey(text)
		if (err == nil) != want || want && !key.Equal(public) {
			t.Errorf("%q: got %x, error %v, want it taken: %t", text, key, err, want)
		}
	}
}

func TestAReleaseIsFetchedAndVerified(t *testing.T) {
	public, private := keys(t)
	server := serve(t, private, []byte("new"), nil)
	address := server.URL + "/release/manifest.json"
	m, err := Fetch(t.Context(), server.Client(), address, public)
	if err != nil {
		t.Fatal(err)
	}
	program, err := Download(t.Context(), server.Client(), address, m, "linux/amd64")
	if err != nil || string(program) != "new" {
		t.Errorf("got %q, error %v", program, err)
	}
	if _, err := Download(t.Context(), server.Client(), address, m, "plan9/arm"); err == nil {
		t.Error("a platform that is not offered was downloaded")
	}
	if _, err := Fetch(t.Context(), server.Client(), server.URL+"/none.json", public); err == nil || !strings.Contains(err.Error(), "404 Not Found") {
		t.Errorf("an address of nothing: got error %v, want what the server says", err)
	}
	other, _ := keys(t)
	if _, err := Fetch(t.Context(), server.Client(), address, other); err == nil || !strings.Contains(err.Error(), "not signed") {
		t.Errorf("another key: got error %v", err)
	}
}

func TestAnotherProgramIsRefused(t *testing.T) {
	public, private := keys(t)
	for name, change := range map[string]func(*Manifest){
		"another checksum": func(m *Manifest) {
			f := m.Files["linux/amd64"]
			f.SHA256 = strings.Repeat("0", 64)
			m.Files["linux/amd64"] = f
		},
		"shorter": func(m *Manifest) { f := m.Files["linux/amd64"]; f.Size--; m.Files["linux/amd64"] = f },
		"longer":  func(m *Manifest) { f := m.Files["linux/amd64"]; f.Size++; m.Files["linux/amd64"] = f },
		"huge":    func(m *Manifest) { f := m.Files["linux/amd64"]; f.Size = maxProgram + 1; m.Files["linux/amd64"] = f },
	} {
		server := serve(t, private, []byte("new"), change)
		address := server.URL + "/release/manifest.json"
		m, err := Fetch(t.Context(), server.Client(), address, public)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Download(t.Context(), server.Client(), address, m, "linux/amd64"); err == nil {
			t.Errorf("%s: the program was taken", name)
		}
	}
}

// Each program finds its own file: 32-bit ARM is not the beginning of the name of
// 64-bit ARM, and of older processors there is none.
func TestForIsExact(t *testing.T) {
	m := Manifest{Version: "2.0.0", Files: map[string]File{"linux/arm64": {URL: "arm64"}, "linux/armv7": {URL: "armv7"}}}
	for platform, want := range map[string]string{"linux/arm64": "arm64", "linux/armv7": "armv7", "linux/armv6": "", "linux/arm": "", "linux/amd64": ""} {
		got, err := m.For(platform)
		if got.URL != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, error %v; want %q", platform, got.URL, err, want)
		}
		if err != nil && err.Error() != "version 2.0.0 is not offered for "+platform {
			t.Errorf("%s: got error %v, want the version and the platform", platform, err)
		}
	}
}

// silent is a server that sends begin and then nothing, in a bubble's own time.
type silent struct{ begin string }

func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.begin == "" {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	reader, writer := io.Pipe()
	go func() {
		_, _ = io.WriteString(writer, s.begin)
		<-r.Context().Done()
		writer.CloseWithError(r.Context().Err())
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: reader, Request: r}, nil
}

func TestASilentServerIsNotWaitedFor(t *testing.T) {
	public, _ := keys(t)
	m := Manifest{Version: "2.0.0", Files: map[string]File{"linux/amd64": {URL: "adit", Size: 1000}}}
	for name, server := range map[string]silent{"no answer": {}, "a part": {"{"}} {
		synctest.Test(t, func(t *testing.T) {
			c := &http.Client{Transport: server}
			began := time.Now()
			if _, err := Fetch(t.Context(), c, "http://releases.example/adit.json", public); err == nil || !strings.Contains(err.Error(), "try again later") {
				t.Errorf("the manifest, %s: got error %v", name, err)
			}
			if _, err := Download(t.Context(), c, "http://releases.example/adit.json", m, "linux/amd64"); err == nil || !strings.Contains(err.Error(), "sends no more") {
				t.Errorf("the program, %s: got error %v", name, err)
			}
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("%s: it took %v", name, took)
			}
		})
	}
}

// TestASlowServerIsWaitedFor for as long as something comes.
func TestASlowServerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		program := strings.Repeat("x", 20)
		m := Manifest{Version: "2.0.0", Files: map[string]File{"linux/amd64": {URL: "adit", Size: 20, SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(program)))}}}
		c := &http.Client{Transport: slow{program}}
		if got, err := Download(t.Context(), c, "http://releases.example/adit.json", m, "linux/amd64"); err != nil || string(got) != program {
			t.Errorf("got %q, error %v", got, err)
		}
	})
}

// slow is a server that sends a byte each twenty seconds.
type slow struct{ text string }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	go func() {
		for i := range len(s.text) {
			select {
			case <-time.After(20 * time.Second):
			case <-r.Context().Done():
				writer.CloseWithError(r.Context().Err())
				return
			}
			_, _ = io.WriteString(writer, s.text[i:i+1])
		}
		writer.Close()
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: reader, Request: r}, nil
}

func TestNewerComparesReleases(t *testing.T) {
	for _, tt := range []struct {
		offered, current string
		want             bool
	}{
		{"1.2.3", "1.2.2", true},
		{"1.2.3", "1.2.3", false},
		{"1.2.3", "1.3.0", false},
		{"1.10.0", "1.9.9", true},
		{"1.0.0", "1.0.0-rc.1", true},
		{"1.0.0-rc.1", "1.0.0", false},
		{"1.0.0-rc.10", "1.0.0-rc.9", true},
		{"1.0.0-rc.9", "1.0.0-rc.10", false},
		{"1.0.0-rc.1", "1.0.0-beta.2", true},
		{"1.0.0-rc.1.1", "1.0.0-rc.1", true},
		{"1.0.0-rc", "1.0.0-1", true},
		{"1.0.0-rc.1", "1.0.0-rc.1", false},
		{"v2.0.0", "1.0.0", true},
		{"1.0.0", "devel", true},
		{"latest", "1.0.0", false},
		{"latest", "devel", false},
		{"0.0.0", "devel", true},
		{"1.2", "1.1.9", false},
		{"1.2.3.4", "1.2.2", false},
	} {
		if got := Newer(tt.offered, tt.current); got != tt.want {
			t.Errorf("Newer(%s, %s): got %t", tt.offered, tt.current, got)
		}
	}
}

func TestReplaceKeepsTheNewProgramIfItIsWell(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "adit")
	write(t, exe, "old")
	var seen string
	if err := Replace(t.Context(), exe, []byte("new"), func(context.Context) error { seen = read(t, exe); return nil }); err != nil {
		t.Fatal(err)
	}
	if seen != "new" || read(t, exe) != "new" {
		t.Errorf("restarted with %q, left %q", seen, read(t, exe))
	}
	alone(t, exe)
}

func TestReplaceGoesBackIfItIsNot(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "adit")
	write(t, exe, "old")
	var seen []string
	ctx, interrupt := context.WithCancel(t.Context())
	err := Replace(ctx, exe, []byte("new"), func(ctx context.Context) error {
		seen = append(seen, read(t, exe))
		if seen[len(seen)-1] == "new" {
			interrupt() // who has seen enough still gets the old program back
			return errors.New("no answer")
		}
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "old program is back") {
		t.Errorf("got error %v", err)
	}
	if strings.Join(seen, " ") != "new old" || read(t, exe) != "old" {
		t.Errorf("restarted with %v, left %q", seen, read(t, exe))
	}
	alone(t, exe)
}

// consoleProgram is as much of a program of Windows as is read, told apart by text.
func consoleProgram(text string) []byte {
	data := make([]byte, 0x200)
	data[0x3c] = 0x80
	binary.LittleEndian.PutUint16(data[0x80+24:], 0x20b) // PE32+
	data[0x80+24+68] = pe.IMAGE_SUBSYSTEM_WINDOWS_CUI
	return append(data, text...)
}

func TestReplaceBringsTheTrayItsProgram(t *testing.T) {
	for name, tt := range map[string]struct {
		well bool
		want string
	}{"well": {true, "new"}, "not well": {false, "old"}} {
		t.Run(name, func(t *testing.T) {
			exe := filepath.Join(t.TempDir(), "adit.exe")
			trayExe := filepath.Join(filepath.Dir(exe), "adit-tray.exe")
			write(t, exe, string(consoleProgram("old")))
			write(t, trayExe, "the tray, old")
			err := Replace(t.Context(), exe, consoleProgram("new"), func(context.Context) error {
				if got := read(t, trayExe); got != "the tray, old" {
					t.Error("the tray has the new program before the daemon is well with it")
				}
				if tt.well || strings.HasSuffix(read(t, exe), "old") {
					return nil
				}
				return errors.New("no answer")
			})
			got := read(t, trayExe)
			if (err == nil) != tt.well || !strings.HasSuffix(read(t, exe), tt.want) || !strings.HasSuffix(got, tt.want) {
				t.Errorf("got error %v, %q and tray %q", err, read(t, exe), got)
			}
			if tt.well && got[0x80+24+68] != pe.IMAGE_SUBSYSTEM_WINDOWS_GUI {
				t.Error("the tray has a console")
			}
			entries, err := os.ReadDir(filepath.Dir(exe))
			if err != nil || len(entries) != 2 {
				t.Errorf("got %v, error %v, want the two programs alone", entries, err)
			}
		})
	}
}

func TestReplaceChangesNothingForAProgramThatHasNoTray(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "adit.exe")
	write(t, exe, "old")
	write(t, filepath.Join(filepath.Dir(exe), "adit-tray.exe"), "the tray, old")
	err := Replace(t.Context(), exe, []byte("new"), func(context.Context) error { return nil })
	if err == nil || read(t, exe) != "old" {
		t.Errorf("got error %v and %q", err, read(t, exe))
	}
}

func TestTheTrayIsSetAside(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "adit.exe")
	trayExe := filepath.Join(filepath.Dir(exe), "adit-tray.exe")
	if err := SetTrayAside(exe); err != nil {
		t.Errorf("without a tray: %v", err)
	}
	write(t, trayExe, "the tray")
	write(t, trayExe+".old", "of an earlier update")
	before, err := os.Stat(trayExe)
	if err != nil {
		t.Fatal(err)
	}
	if err := SetTrayAside(exe); err != nil {
		t.Fatal(err)
	}
	old, err := os.Stat(trayExe + ".old")
	if err != nil || !os.SameFile(old, before) {
		t.Errorf("what was set aside is not what was there; error %v", err)
	}
	now, err := os.Stat(trayExe)
	if err != nil || os.SameFile(now, before) || !now.ModTime().Equal(before.ModTime()) || read(t, trayExe) != "the tray" {
		t.Errorf("in its place is no copy of it; error %v", err)
	}
	for range 2 { // the second time there is nothing
		if err := SweepTray(t.Context(), exe); err != nil {
			t.Error(err)
		}
	}
	alone(t, trayExe)
}

func TestManagedFilesAreTold(t *testing.T) {
	for exe, want := range map[string]bool{
		"/usr/bin/adit": true, "/usr/local/bin/adit": false, "/opt/adit/adit": false, "/Applications/Adit.app/Contents/MacOS/adit": true,
		"/usr/local/Cellar/adit/1/bin/adit": true,
		// Where the docs have a person put it whom no installer has served.
		`C:\Program Files\Adit\adit.exe`: false, `C:\tools\adit.exe`: false,
	} {
		if got := Managed(exe); got != want {
			t.Errorf("%s: got %t", exe, got)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alone checks that nothing else is left beside exe.
func alone(t *testing.T, exe string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(exe))
	if err != nil || len(entries) != 1 {
		t.Errorf("got %v, error %v", entries, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":"1.0.0","files":{}}`), []byte("AAAA"))
	public := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32)).Public().(ed25519.PublicKey)
	f.Fuzz(func(t *testing.T, data, signature []byte) {
		if _, err := Parse(data, signature, public); err == nil {
			t.Fatal("a manifest without a signature of the key was taken")
		}
	})
}
