package feed

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestFeedSaysWhatWasMissed(t *testing.T) {
	const base = 1 << 40
	f := begin(base)
	for range size + 10 {
		f.Publish("log", nil)
	}
	after := func(id uint64) Event {
		e, err := f.Subscribe(&id).Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := after(base + 2); e.Type != TypeMissed || e.Data != (Missed{Missed: 8}) || e.ID != base+10 {
		t.Errorf("got %+v, want 8 missed", e)
	}
	if e := after(base + 10); e.Type != "log" || e.ID != base+11 {
		t.Errorf("got %+v, want event 11", e)
	}
	for _, id := range []uint64{0, 7, base - 1, base + 1<<20} {
		if e := after(id); e.Type != TypeMissed || e.Data != (Missed{Missed: 10, Restarted: true}) || e.ID != base+10 {
			t.Errorf("from %d: got %+v, want a restart", id, e)
		}
	}
	id := uint64(base)
	sub := f.Subscribe(&id)
	for want := uint64(base + 10); want <= base+size+10; want++ {
		if e, err := sub.Next(t.Context()); err != nil || e.ID != want {
			t.Fatalf("got %+v, %v, want id %d", e, err, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if e, err := sub.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %+v, %v, want nothing more", e, err)
	}
}

// TestIdsOfAnotherRunAreKnownWhateverTheClockSays has runs begin at one time, as on a
// machine without a clock of its own. By chance one in 2,000 is not told apart.
func TestIdsOfAnotherRunAreKnownWhateverTheClockSays(t *testing.T) {
	const runs, events = 100, 1000
	at, told := time.Now(), 0
	for range runs {
		before, now := New(at), New(at)
		for range events {
			before.Publish("log", nil)
			now.Publish("log", nil)
		}
		if e, _ := now.after(before.last - events/2); e.Type == TypeMissed && e.Data.(Missed).Restarted {
			told++
		}
		if next := newBase(at.Add(time.Second)); next <= before.last {
			t.Errorf("a run a second later begins at %d, want it above %d", next, before.last)
		}
	}
	if told < runs-5 {
		t.Errorf("%d of %d restarts were told, want nearly all", told, runs)
	}
}
