package store

import (
	"testing"

	"adit/tunnel/relay/store/natstest"
)

// TestSettingThatAServerKeptBackDoesNotUndoALaterOne repeats the write of a setting after its
// server has hung, has another node write, and then lets the hung server go on.
func TestSettingThatAServerKeptBackDoesNotUndoALaterOne(t *testing.T) {
	s, ctx := open(t, t.TempDir()), t.Context()
	kv := &natstest.Keeping{KeyValue: s.Settings.kv}
	kv.Keep.Store(true)
	if err := (&Settings{kv: kv}).Put(ctx, "d", []byte("old")); err != nil {
		t.Fatal(err)
	}
	if kv.Kept == nil {
		t.Fatal("no write was kept back")
	}
	if err := s.Settings.Put(ctx, "d", []byte("new")); err != nil {
		t.Fatal(err)
	}
	kv.Kept()
	if got, err := s.Settings.Get(ctx, "d"); err != nil || string(got) != "new" {
		t.Errorf("got %q, %v, want what was written last", got, err)
	}
}
