package replica

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestWhatIsNewerReplacesWhatIsOlder delivers the revisions of one key in any order.
func TestWhatIsNewerReplacesWhatIsOlder(t *testing.T) {
	r := New[string](time.Hour)
	r.Set("a", "first", 5)
	var heard []string
	r.OnValues(func(key, v string, exists bool) { heard = append(heard, fmt.Sprint(key, v, exists)) })
	for _, c := range []struct {
		rev   uint64
		value string // empty: it is removed
		want  string
	}{
		{5, "again", "first"},
		{4, "old", "first"},
		{4, "", "first"},
		{7, "next", "next"},
		{6, "late", "next"},
		{7, "", ""},
		{7, "next", ""},
		{9, "new", "new"},
	} {
		if c.value == "" {
			r.Remove("a", c.rev)
		} else {
			r.Set("a", c.value, c.rev)
		}
		if v, _, ok := r.Get("a"); v != c.want || ok != (c.want != "") {
			t.Errorf("after %q of revision %d: got %q, %t, want %q", c.value, c.rev, v, ok, c.want)
		}
	}
	if want := []string{"afirsttrue", "anexttrue", "afalse", "anewtrue"}; !slices.Equal(heard, want) {
		t.Errorf("heard of %q, want %q", heard, want)
	}
	if r.Newest() != 9 || r.Past("a", 9) || !r.Past("a", 8) || !r.Past("b", 1) {
		t.Errorf("the newest is %d, and past is %t, %t, %t", r.Newest(), r.Past("a", 9), r.Past("a", 8), r.Past("b", 1))
	}
}

// TestARevisionIsOneThatListenersHaveHeard checks that a value in memory does not count as in
// force until listeners have been told.
func TestARevisionIsOneThatListenersHaveHeard(t *testing.T) {
	r := New[string](time.Hour)
	hearing, hears, order := make(chan struct{}), make(chan struct{}), make(chan string, 2)
	r.OnChange(func(_, _ string, exists bool) {
		if exists {
			close(hears)
			<-hearing
			order <- "heard"
		}
	})
	go r.Set("a", "first", 5)
	<-hears
	if _, rev, _ := r.Get("a"); rev != 5 {
		t.Errorf("in memory is %d, want 5", rev)
	}
	asked, told := make(chan struct{}), make(chan uint64, 1)
	go func() {
		close(asked)
		rev, _ := r.Revision("a")
		told <- rev
		order <- "told"
	}()
	<-asked
	close(hearing)
	if first, rev := <-order, <-told; first != "heard" || rev != 5 {
		t.Errorf("%s first, and told of %d, want 5", first, rev)
	}
	r.Remove("a", 8)
	if rev, exists := r.Revision("a"); rev != 8 || exists {
		t.Errorf("after its removal: told of %d, which exists: %t", rev, exists)
	}
	if rev, exists := r.Revision("b"); rev != 0 || exists {
		t.Errorf("of nothing: told of %d, which exists: %t", rev, exists)
	}
}

// TestForgottenIsWhatHasNotChangedSince changes a value while it is found to be missing.
func TestForgottenIsWhatHasNotChangedSince(t *testing.T) {
	r := New[string](time.Hour)
	r.Set("gone", "x", 1)
	r.Set("changed", "x", 2)
	gone := r.Revisions()
	r.Set("changed", "y", 3)
	var heard []string
	r.OnChange(func(key, _ string, exists bool) { heard = append(heard, fmt.Sprint(key, exists)) })
	r.Forget(gone)
	if v, _, ok := r.Get("changed"); !ok || v != "y" {
		t.Errorf("what has changed is %q, %t", v, ok)
	}
	if _, _, ok := r.Get("gone"); ok || !slices.Equal(heard, []string{"gonefalse"}) {
		t.Errorf("what is gone is there: %t; heard of %q", ok, heard)
	}
}

// TestTwoWritesOfOneRevisionAreToldApartByTheirTime knows only the first of the two.
func TestTwoWritesOfOneRevisionAreToldApartByTheirTime(t *testing.T) {
	r := New[string](time.Hour)
	r.Set("a", "first", 5)
	at := time.Now()
	for i, c := range []struct {
		key     string
		rev     uint64
		written time.Time
		same    bool
	}{
		{"none", 5, at, true},
		{"a", 4, at.Add(time.Second), true}, // of another revision
		{"a", 5, at, true},
		{"a", 5, at, true},
		{"a", 5, at.Add(time.Second), false},
	} {
		if same := r.Date(c.key, c.rev, c.written); same != c.same {
			t.Errorf("step %d: the same write: %t", i, same)
		}
	}
	e, ok := r.Entry("a")
	if !ok || e.Value != "first" || e.Revision != 5 || e.Removed || !e.Written.Equal(at) {
		t.Errorf("got %+v, %t", e, ok)
	}
	r.Remove("a", 5)
	if e, ok := r.Entry("a"); !ok || !e.Removed || !e.Written.IsZero() {
		t.Errorf("removed: got %+v, %t", e, ok)
	}
	if e, ok := r.Entry("none"); ok {
		t.Errorf("of nothing: got %+v", e)
	}
}
