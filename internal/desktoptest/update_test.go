package desktoptest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"adit/internal/require"
	"adit/internal/update"
)

// offer writes a release 0.2.0 of each program into dir, as NAME with the signed
// NAME.json, and returns the public key. Two more are offers of the good program
// that somebody has meddled with.
func offer(t *testing.T, dir string, programs map[string][]byte) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	manifest := func(name, file string, change func(*update.File)) {
		f := update.File{URL: file, SHA256: fmt.Sprintf("%x", sha256.Sum256(programs[file])), Size: int64(len(programs[file]))}
		if change != nil {
			change(&f)
		}
		data, err := json.Marshal(update.Manifest{Version: "0.2.0", Files: map[string]update.File{runtime.GOOS + "/" + runtime.GOARCH: f}})
		if err != nil {
			t.Fatal(err)
		}
		write(name+".json", data)
		write(name+".json.sig", []byte(base64.StdEncoding.EncodeToString(ed25519.Sign(private, data))))
	}
	for name, data := range programs {
		write(name, data)
		manifest(name, name, nil)
	}
	manifest("checksum", "good", func(f *update.File) { f.SHA256 = strings.Repeat("0", 64) })
	manifest("forged", "good", nil)
	write("forged.json", append(read(t, filepath.Join(dir, "good.json")), ' '))
	return base64.StdEncoding.EncodeToString(public)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestUpdateAsACommand is about a program that no service runs; the one that a
// service does is in the test under systemd.
func TestUpdateAsACommand(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	old, next := read(t, released(t, firstVersion)), read(t, released(t, secondVersion))
	dir, exe := t.TempDir(), filepath.Join(t.TempDir(), "adit")
	key := offer(t, dir, map[string][]byte{"good": next})
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	if err := os.WriteFile(exe, old, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(verb, manifest, key string) (string, error) {
		return command(t, patience, nil, exe, "update", verb, "--manifest", server.URL+"/"+manifest+".json", "--key", key)
	}
	for _, tt := range []struct{ manifest, key, want string }{
		{"forged", key, "not signed"},
		{"good", base64.StdEncoding.EncodeToString(make([]byte, 32)), "not signed"},
		{"good", "short", "not 32 bytes"},
		{"checksum", key, "not the one that the manifest names"},
		{"missing", key, "404"},
	} {
		if out, err := run("apply", tt.manifest, tt.key); err == nil || !strings.Contains(out, tt.want) {
			t.Errorf("%s: got error %v and %q, want %q", tt.manifest, err, out, tt.want)
		}
		if string(read(t, exe)) != string(old) {
			t.Fatalf("%s: the program was changed", tt.manifest)
		}
	}
	if out, err := run("check", "good", key); err != nil || !strings.Contains(out, "0.2.0 is available; this is 0.1.0") {
		t.Errorf("check: got error %v and %q", err, out)
	}
	if out, err := run("apply", "good", key); err != nil || !strings.Contains(out, "0.2.0 has replaced 0.1.0") {
		t.Errorf("apply: got error %v and %q", err, out)
	}
	if string(read(t, exe)) != string(next) {
		t.Error("apply left another program than the offered one")
	}
	if out, err := run("apply", "good", key); err != nil || !strings.Contains(out, "0.2.0 is the newest release") {
		t.Errorf("apply, again: got error %v and %q", err, out)
	}
	if entries, err := os.ReadDir(filepath.Dir(exe)); err != nil || len(entries) != 1 {
		t.Errorf("beside the program: got %v, error %v", entries, err)
	}
}
