package store

import (
	"testing"
	"time"
)

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
