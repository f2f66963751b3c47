package config

import (
	"context"
	"os"
	"path/filepath"
	"slices"
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
						w.run(ctx, time.Millisecond, nil, tell)
						done <- nil
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

// What the file names is noticed, too: what it names from now on, and no more what it
// named before.
func TestWatchFollowsWhatTheFileNames(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("etc/"+Name, "# one")
	ctx, cancel := context.WithCancel(t.Context())
	w := NewWatcher(filepath.Join(root, "etc"))
	names := []string{filepath.Join(root, "secrets", "one")}
	w.Follow(names)
	told := make(chan string)
	done := make(chan error, 1)
	go func() {
		done <- w.Run(ctx, 20*time.Millisecond, func() {
			w.Follow(names)
			text, _ := os.ReadFile(names[0])
			told <- string(text)
		})
	}()
	expect := func(want string) {
		t.Helper()
		for timeout := time.After(60 * time.Second); ; {
			select {
			case got := <-told:
				if got == want {
					return
				}
			case <-timeout:
				t.Fatalf("%q was not told", want)
			}
		}
	}
	write("secrets/one", "first") // in a folder that was not there
	expect("first")
	write("secrets/one", "second, longer")
	expect("second, longer")
	write("secrets/two", "third")
	names = []string{filepath.Join(root, "secrets", "two")}
	write("etc/"+Name, "# names the other")
	expect("third")
	write("secrets/two", "fourth, longer")
	expect("fourth, longer")
	cancel()
	for {
		select {
		case <-told:
			continue
		case err := <-done:
			if err != nil || slices.Contains(w.paths, filepath.Join(root, "secrets", "one")) {
				t.Errorf("got %v, and %v is still followed", err, w.paths)
			}
		}
		break
	}
}
