package store

import (
	"testing"
	"time"
)

// TestNumbersOfEndsRise checks that numbers increase whatever the moments are, and that
// another store's numbers are recognised as such.
func TestNumbersOfEndsRise(t *testing.T) {
	cfg := Config{Dir: t.TempDir()}
	open := func() *Store {
		t.Helper()
		s, err := Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := open()
	now, before := time.Now().UTC(), s.Ended.Newest()
	for i, at := range []time.Time{now, now.Add(-time.Hour), now} {
		if err := s.Ended.Set(t.Context(), EndedSignIns{User: "ann", At: at, Until: now.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		_, number := s.Ended.At("ann")
		if number <= before || number != s.Ended.Newest() {
			t.Errorf("end %d has the number %d, the newest is %d, and before it was %d", i, number, s.Ended.Newest(), before)
		}
		before = number
	}
	which := s.Ended.Store()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if again := open(); which == 0 || again.Ended.Store() != which || again.Ended.Newest() != before {
		t.Errorf("opened again it is %d with %d, and was %d with %d", again.Ended.Store(), again.Ended.Newest(), which, before)
	}
	if other := openAt(t, Config{Dir: t.TempDir()}); other.Ended.Store() == which {
		t.Error("another store is taken for the same")
	}
}

func TestEndedSignInsAreForgotten(t *testing.T) {
	s := openAt(t, Config{Dir: t.TempDir()})
	ctx, now := t.Context(), time.Now().UTC().Truncate(time.Second)
	set := func(user string, at time.Time) {
		t.Helper()
		if err := s.Ended.Set(ctx, EndedSignIns{User: user, At: at, Until: at.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	set("ann@example.com", now)
	set("ann@example.com", now.Add(-time.Minute)) // of two nodes whose clocks differ
	set("ben <any text> *", now.Add(-time.Hour))
	if got, _ := s.Ended.At("ann@example.com"); !got.Equal(now) {
		t.Errorf("got %v, want the later %v", got, now)
	}
	if got, _ := s.Ended.At("ben"); !got.IsZero() {
		t.Errorf("of nobody: %v", got)
	}
	for range 2 { // the second has nothing to do
		if err := s.Ended.Forget(ctx, now); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := s.Ended.At("ben <any text> *"); !got.IsZero() || len(s.Ended.List()) != 1 {
		t.Errorf("after its time: %v, of %d", got, len(s.Ended.List()))
	}

	// A backup has them: the key of the cookies is in it, too.
	if err := s.Settings.Put(ctx, SettingAuthority, []byte("authority")); err != nil {
		t.Fatal(err)
	}
	b, err := s.Backup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	into := openAt(t, Config{Dir: t.TempDir(), Restoring: true})
	if err := into.Restore(ctx, b); err != nil {
		t.Fatal(err)
	}
	if got, _ := into.Ended.At("ann@example.com"); !got.Equal(now) {
		t.Errorf("restored: %v", got)
	}
}
