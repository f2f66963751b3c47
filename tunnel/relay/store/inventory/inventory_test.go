package inventory

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// shelf is a table in memory.
type shelf struct {
	mu      sync.Mutex
	values  map[string]uint64
	removed map[string]uint64 // that are still remembered
	taken   uint64
	last    uint64
	told    []func()
}

func newShelf() *shelf { return &shelf{values: map[string]uint64{}, removed: map[string]uint64{}} }

func (s *shelf) Revisions() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values)
}

func (s *shelf) Known(key string) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rev, ok := s.values[key]; ok {
		return rev, true
	}
	return s.removed[key], false
}

func (s *shelf) Taken() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

func (s *shelf) Last(context.Context) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last, nil
}

func (s *shelf) OnWrite(f func()) { s.told = append(s.told, f) }

// put writes a value, and remove takes one out; forget is of the removal's marker.
func (s *shelf) put(key string) {
	s.mu.Lock()
	s.last++
	s.values[key], s.taken = s.last, s.last
	s.mu.Unlock()
	s.tell()
}

func (s *shelf) remove(key string) {
	s.mu.Lock()
	s.last++
	delete(s.values, key)
	s.removed[key], s.taken = s.last, s.last
	s.mu.Unlock()
	s.tell()
}

func (s *shelf) tell() {
	for _, f := range s.told {
		f()
	}
}

// restart is the table as the next start reads it, without what is not remembered.
func (s *shelf) restart() *shelf {
	next := newShelf()
	next.values, next.last = s.Revisions(), s.last
	for _, rev := range next.values {
		next.taken = max(next.taken, rev)
	}
	return next
}

func passing(key string) bool { return strings.HasPrefix(key, "login.") }

func of(path string, s *shelf) *Inventory {
	i := New(path, slog.New(slog.DiscardHandler))
	i.Add("policies", s, passing)
	return i
}

// kept writes the inventory of a shelf.
func kept(t *testing.T, path string, s *shelf) {
	t.Helper()
	i := of(path, s)
	if faults := check(t, i); len(faults) > 0 {
		t.Fatalf("before: %v", faults)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	i.Keep(ctx)
}

func check(t *testing.T, i *Inventory) []Fault {
	t.Helper()
	faults, err := i.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

func TestWhatIsLostIsFound(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(s *shelf)
		want []Fault
	}{
		{"nothing", func(*shelf) {}, nil},
		{"one value", func(s *shelf) { delete(s.values, "a") }, []Fault{{"policies", "a", Gone}}},
		{
			"all values, and the count",
			func(s *shelf) { s.values, s.taken, s.last = map[string]uint64{}, 0, 0 },
			[]Fault{{"policies", "a", Gone}, {"policies", "b", Gone}},
		},
		{"the newer of two", func(s *shelf) { s.values["b"] = 2 }, []Fault{{"policies", "b", Older}}},
		{"a removal", func(s *shelf) { s.values["c"] = 3 }, []Fault{{"policies", "c", Back}}},
		{"what was passing", func(s *shelf) { delete(s.values, "login.x") }, nil},
		{"the end of what was passing", func(s *shelf) { s.values["login.y"] = 1 }, nil},
		// The list is a moment behind after a kill.
		{"what was written since", func(s *shelf) { s.put("a"); s.put("d") }, nil},
		{"what was removed since", func(s *shelf) { s.remove("a") }, nil},
		{"what was removed since and forgotten", func(s *shelf) { s.remove("a"); delete(s.removed, "a") }, nil},
		{
			"more than was removed since",
			func(s *shelf) { s.remove("a"); delete(s.values, "b"); delete(s.removed, "a") },
			[]Fault{{"policies", "a", Gone}, {"policies", "b", Gone}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, s := filepath.Join(t.TempDir(), File), newShelf()
			s.put("a")
			s.put("b")
			s.put("c")
			s.put("b")
			s.remove("c")
			s.put("login.x")
			s = s.restart() // the removal is forgotten
			kept(t, path, s)
			c.harm(s)
			faults := check(t, of(path, s))
			if !slices.Equal(faults, c.want) {
				t.Errorf("got %v, want %v", faults, c.want)
			}
		})
	}
}

// TestWhatIsLostIsFoundByAListThatWasEarly uses a list that contains values that the table's
// watch had not brought when the list was written, as at the end of a busy process.
func TestWhatIsLostIsFoundByAListThatWasEarly(t *testing.T) {
	for name, c := range map[string]struct {
		then func(s *shelf)
		want []Fault
	}{
		"all is there":                         {func(*shelf) {}, nil},
		"all is lost":                          {func(s *shelf) { clear(s.values) }, []Fault{{"policies", "a", Gone}, {"policies", "b", Gone}}},
		"one was removed since, and forgotten": {func(s *shelf) { s.remove("a"); delete(s.removed, "a") }, nil},
	} {
		path, s := filepath.Join(t.TempDir(), File), newShelf()
		i := of(path, s)
		check(t, i)
		s.put("a")
		s.put("b")
		s.put("b")
		s.taken = 0
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		i.Keep(ctx)
		s = s.restart()
		c.then(s)
		if faults := check(t, of(path, s)); !slices.Equal(faults, c.want) {
			t.Errorf("%s: got %v, want %v", name, faults, c.want)
		}
	}
}

func TestWithoutAListNothingIsAtFault(t *testing.T) {
	for name, content := range map[string]string{"none": "", "rubbish": "\x00\x00", "a newer program's": `{"version":2,"tables":{"policies":{"last":9,"keys":{"z":9}}}}`} {
		path, s := filepath.Join(t.TempDir(), File), newShelf()
		s.put("a")
		if content != "" {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		kept(t, path, s)
		delete(s.values, "a")
		if faults := check(t, of(path, s)); len(faults) != 1 {
			t.Errorf("%s: after it was written anew: %v, want one fault", name, faults)
		}
	}
}

// keeping keeps the inventory of an empty shelf until end.
func keeping(t *testing.T, path string) (s *shelf, end func()) {
	t.Helper()
	s = newShelf()
	i := of(path, s)
	check(t, i)
	ctx, cancel := context.WithCancel(t.Context())
	var kept sync.WaitGroup
	kept.Go(func() { i.Keep(ctx) })
	return s, func() {
		cancel()
		kept.Wait()
	}
}

func TestChangesAreListedAMomentLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	synctest.Test(t, func(t *testing.T) {
		s, end := keeping(t, path)
		has := func() map[string]uint64 { return of(path, newShelf()).read()["policies"].Keys }
		synctest.Wait()
		s.put("a")
		s.put("login.x")
		time.Sleep(gather)
		synctest.Wait()
		if keys := has(); keys["a"] != 1 || len(keys) != 1 {
			t.Errorf("after a change: %v", keys)
		}
		s.remove("a")
		end()
		if keys := has(); len(keys) != 0 {
			t.Errorf("after the end: %v", keys)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
			t.Errorf("the file: %v, %v, want one for its owner alone", info.Mode(), err)
		}
	})
}

// TestAWatchThatLagsIsWaitedFor matters because the loss of values that the list does not
// contain would go unnoticed.
func TestAWatchThatLagsIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	synctest.Test(t, func(t *testing.T) {
		s, end := keeping(t, path)
		defer end()
		synctest.Wait()
		s.put("a")
		s.mu.Lock()
		s.taken = 0
		s.mu.Unlock()
		time.Sleep(gather + gather/2)
		s.mu.Lock()
		s.taken = 1
		s.mu.Unlock()
		time.Sleep(gather)
		synctest.Wait()
		if last := of(path, newShelf()).read()["policies"].Last; last != 1 {
			t.Errorf("the list is of revision %d, want 1", last)
		}
	})
}

func TestAListThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", File)
	synctest.Test(t, func(t *testing.T) {
		_, end := keeping(t, path)
		defer end()
		synctest.Wait()
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(again + 2*gather)
		synctest.Wait()
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			t.Error("there is no list a minute after its folder was made")
		}
	})
}
