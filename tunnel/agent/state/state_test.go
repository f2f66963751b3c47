package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatIsNoStateFileIsPutAside as one that does not read is: a daemon that did not
// start at every start of the machine would be worse.
func TestWhatIsNoStateFileIsPutAside(t *testing.T) {
	for _, name := range []string{authFile, tunnelsFile} {
		for what, make := range map[string]func(path string) error{
			"a folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "kept"), 0o700) },
			"a huge file": func(path string) error {
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					return err
				}
				return os.Truncate(path, maxStateFile+1)
			},
			"a pipe": makePipe,
		} {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			if err := make(path); err != nil {
				t.Logf("%s cannot be made here: %v", what, err)
				continue
			}
			f, err := Open(dir)
			if err != nil {
				t.Errorf("%s as %s: %v", what, name, err)
				continue
			}
			saved, err := f.Load()
			if err != nil || len(saved.Notices) != 1 {
				t.Errorf("%s as %s: got %q, %v, want one notice", what, name, saved.Notices, err)
				continue
			}
			if got := saved.Notices[0]; !strings.Contains(got, name) || !strings.Contains(got, "began without it") {
				t.Errorf("%s as %s: got %q, want it to name the file", what, name, got)
			}
			if kept, _ := filepath.Glob(path + ".corrupt-*"); len(kept) != 1 {
				t.Errorf("%s as %s: kept %v, want one", what, name, kept)
			}
			f.Close()
		}
	}
}

// TestWhatIsWrongWithAFileIsSaid in words of JSON and not of Go, and a file of a later adit
// stays where it is.
func TestWhatIsWrongWithAFileIsSaid(t *testing.T) {
	for content, want := range map[string]string{
		"[]":                                     "it is not a JSON object",
		`"text"`:                                 "it is not a JSON object",
		"":                                       "unexpected end of JSON input",
		"{}":                                     "it names no version",
		`{"version": "1"}`:                       "version",
		`{"version": 1, "tunnels": 3}`:           "tunnels is a number",
		`{"version": 1, "tunnels": [{"id": 3}]}`: "id is a number",
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, tunnelsFile)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		saved, err := f.Load()
		if err != nil || len(saved.Notices) != 1 || !strings.Contains(saved.Notices[0], want) || len(saved.Tunnels.Tunnels) != 0 {
			t.Errorf("%s: got %d tunnels, %q, error %v, want one notice with %q", content, len(saved.Tunnels.Tunnels), saved.Notices, err, want)
		}
		if kept, _ := filepath.Glob(path + ".corrupt-*"); len(kept) != 1 {
			t.Errorf("%s: kept %v, want one", content, kept)
		}
		later := []byte(`{"version": 1000, "tunnels": 3}`)
		if err := os.WriteFile(path, later, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Load(); err == nil || !strings.Contains(err.Error(), "later adit") {
			t.Errorf("of a later adit: got error %v", err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != string(later) {
			t.Errorf("of a later adit: the file is %q, %v, want it as it was", now, err)
		}
		f.Close()
	}
}

func TestIDsAreThoseThatPathsCanHave(t *testing.T) {
	for id, want := range map[string]bool{
		"tun_01hq3": true, "azAZ09_-": true, strings.Repeat("a", maxID): true,
		"": false, strings.Repeat("a", maxID+1): false, "a/b": false, "a.b": false, "a b": false, "é": false,
		"a[": false, "a@": false, "a`": false, "a{": false, "a:": false, "..": false,
	} {
		if got := isID(id); got != want {
			t.Errorf("%q: got %t, want %t", id, got, want)
		}
	}
	tunnels := Tunnels{Tunnels: []Tunnel{
		{ID: "one", Granted: Grant{Domain: "a.example.com"}}, {ID: "one", Granted: Grant{Domain: "a.example.com"}}, {ID: "../two"}, {ID: "three"},
	}}
	if got := tunnels.mend(); got != 2 {
		t.Errorf("%d were mended, want 2", got)
	}
	all := tunnels.Tunnels
	if all[0].ID != "one" || all[0].Granted.Domain == "" || all[3].ID != "three" {
		t.Errorf("got %+v, want what was right as it was", all)
	}
	if all[1].ID == "one" || all[1].Granted != (Grant{}) || !isID(all[1].ID) || !isID(all[2].ID) || all[1].ID == all[2].ID {
		t.Errorf("got %+v, want new ids, and nothing granted, where they were wrong", all)
	}
}
