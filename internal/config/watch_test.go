package config

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/require"
)

// TestWatchTellsOfChanges changes the file in every way that people and their
// programs do, and waits until each was told: by the system, and by looks alone.
func TestWatchTellsOfChanges(t *testing.T) {
	write := func(name, text string) func(string) error {
		return func(root string) error { return os.WriteFile(filepath.Join(root, name), []byte(text), 0o600) }
	}
	mkdir := func(name string) func(string) error {
		return func(root string) error { return os.MkdirAll(filepath.Join(root, name), 0o700) }
	}
	rename := func(from, to string) func(string) error {
		return func(root string) error { return os.Rename(filepath.Join(root, from), filepath.Join(root, to)) }
	}
	link := func(to, name string) func(string) error {
		return func(root string) error { return os.Symlink(filepath.FromSlash(to), filepath.Join(root, name)) }
	}
	remove := func(name string) func(string) error {
		return func(root string) error { return os.RemoveAll(filepath.Join(root, name)) }
	}
	type step = []func(string) error // the last of them is to be told
	file := filepath.Join("etc", Name)
	tests := []struct {
		name   string
		before step
		steps  []step
	}{
		{"written in place", step{mkdir("etc")}, []step{{write(file, "# one")}, {write(file, "# longer")}, {remove(file)}}},
		{"replaced at once", step{mkdir("etc"), write(file, "# one")}, []step{
			{write("etc/new", "# other"), rename("etc/new", file)}, {write("etc/new", "# again and more"), rename("etc/new", file)},
		}},
		{"in a folder that comes later", nil, []step{{mkdir("etc"), write(file, "# one")}, {write(file, "# longer")}}},
		{"in folders that come later", nil, []step{{mkdir("a/etc"), link("a/etc", "etc"), write(file, "# one")}, {write(file, "# longer")}}},
		{"in a folder that goes and comes back", step{mkdir("etc"), write(file, "# one")}, []step{
			{remove("etc")}, {mkdir("etc"), write(file, "# one")}, {rename("etc", "old")}, {rename("old", "etc")}, {write(file, "# longer")},
		}},
		{"behind a link", step{mkdir("etc"), mkdir("home"), write("home/mine.toml", "# one"), link("../home/mine.toml", file)}, []step{
			{write("home/mine.toml", "# longer")},
			{write("home/new", "# other than that"), rename("home/new", "home/mine.toml")},
			{remove(file)},
			{write("home/yours.toml", "#"), link("../home/yours.toml", file)},
			{write("home/yours.toml", "# longer")},
		}},
		{"behind a link that is put elsewhere", step{mkdir("v1"), mkdir("v2"), write("v1/"+Name, "# one"), write("v2/"+Name, "# second"), link("v1", "etc")}, []step{
			{link("v2", "new"), rename("new", "etc")}, {write("v2/"+Name, "# second, longer")},
		}},
		{"behind links in a circle", step{mkdir("etc"), link(Name, file)}, []step{{remove(file), write(file, "# one")}}},
	}
	for _, test := range tests {
		for _, looks := range []bool{false, true} {
			name := test.name
			if looks {
				name += ", by looks"
			}
			t.Run(name, func(t *testing.T) {
				root := t.TempDir()
				do := func(s step) {
					for _, f := range s {
						if err := f(root); err != nil {
							require.Missing(t, "%v", err) // links need a right on Windows
						}
					}
				}
				do(test.before)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				told := make(chan fileStamp, 100)
				done := make(chan error, 1)
				path := filepath.Join(root, "etc", Name)
				w := NewWatcher(filepath.Dir(path))
				go func() {
					tell := func() { told <- stamp(path) }
					if looks {
						done <- w.run(ctx, time.Millisecond, nil, tell)
					} else {
						done <- w.Run(ctx, 20*time.Millisecond, tell)
					}
				}()
				for i, s := range test.steps {
					before := stamp(path)
					do(s)
					if stamp(path) == before {
						t.Fatalf("step %d changes nothing", i)
					}
					// A step of several changes may be told more than once.
					for want, timeout := stamp(path), time.After(60*time.Second); ; {
						select {
						case got := <-told:
							if got != want {
								continue
							}
						case <-timeout:
							t.Fatalf("step %d was not told", i)
						}
						break
					}
				}
				cancel()
				if err := <-done; err != nil {
					t.Errorf("got %v, want nil", err)
				}
			})
		}
	}
}

func TestWatchLetsAnEditorFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, Name)
		write := func(text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("# first")
		ctx, cancel := context.WithCancel(t.Context())
		w := NewWatcher(dir)
		var told []string
		go w.run(ctx, time.Second, nil, func() {
			text, _ := os.ReadFile(path)
			told = append(told, string(text))
		})
		time.Sleep(time.Second / 2)
		write("")
		time.Sleep(time.Second) // one look finds it empty
		write("# second, whole")
		time.Sleep(5 * time.Second)
		cancel()
		synctest.Wait()
		if len(told) != 1 || told[0] != "# second, whole" {
			t.Errorf("got %q, want the whole file once", told)
		}
	})
}
