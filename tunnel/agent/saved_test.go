package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/tunnel/agent/state"
)

func TestStateFolderThatIsALinkToNothingIsTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Symlink(filepath.Join(t.TempDir(), "gone"), dir); err != nil {
		t.Skip("links cannot be made:", err)
	}
	_, err := New(Config{StateDir: dir})
	if err == nil || !strings.Contains(err.Error(), "leads nowhere") || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want that the folder is a link to nothing", err)
	}
}

// TestTunnelsWithoutAnIDOfTheirOwnHaveNewOnes: a person who copies a tunnel in
// tunnels.json has two then, and not one of them.
func TestTunnelsWithoutAnIDOfTheirOwnHaveNewOnes(t *testing.T) {
	dir := t.TempDir()
	text := `{"version":1,"tunnels":[
		{"id":"tun_a","created_at":"2026-01-01T00:00:00Z","spec":{"name":"first","type":"http","local_port":1},"granted":{"domain":"shop.example"}},
		{"id":"tun_a","created_at":"2026-01-02T00:00:00Z","spec":{"name":"copy","type":"http","local_port":2},"granted":{"domain":"shop.example"}},
		{"id":"","created_at":"2026-01-03T00:00:00Z","spec":{"name":"none","type":"http","local_port":3}},
		{"id":"a/b","created_at":"2026-01-04T00:00:00Z","spec":{"name":"slash","type":"http","local_port":4}},
		{"id":"` + strings.Repeat("x", 65) + `","created_at":"2026-01-05T00:00:00Z","spec":{"name":"long","type":"http","local_port":5}},
		null
	]}`
	path := filepath.Join(dir, tunnelsFile)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	names := make(map[string]string)
	for _, got := range a.Tunnels() {
		names[got.Name] = got.ID
		if found, ok := a.Tunnel(got.ID); !ok || found.Name != got.Name || got.ID == "" || len(got.ID) > 64 || strings.Contains(got.ID, "/") {
			t.Errorf("%q has the id %q, with which there is %+v, %t", got.Name, got.ID, found, ok)
		}
	}
	if len(names) != 6 || names["first"] != "tun_a" {
		t.Errorf("got %v, want six tunnels, and the first with its id", names)
	}
	if given := a.tunnels[names["copy"]].grant; given != (state.Grant{}) {
		t.Errorf("the copy has what the relay gave the first: %+v", given)
	}
	if !a.unsaved.Load() {
		t.Error("the new ids are not to be saved")
	}
	if given := a.tunnels["tun_a"].grant.Domain; given != "shop.example" {
		t.Errorf("the first has %q of the relay, want what it gave", given)
	}
}
