package activity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// shelf stores what it is given, unless it fails. during is called first.
type shelf struct {
	stored map[string]store.Activity
	fault  error
	asked  int
	during func()
}

func (s *shelf) Get(id string) (store.Activity, bool) { a, ok := s.stored[id]; return a, ok }

func (s *shelf) Note(_ context.Context, id string, seen store.Seen, errs []store.ClientError) error {
	s.asked++
	if s.during != nil {
		s.during()
	}
	if s.fault != nil {
		return s.fault
	}
	a := s.stored[id]
	if !seen.At.IsZero() {
		a.Seen = seen
	}
	a.Errors = append(a.Errors, errs...)
	s.stored[id] = a
	return nil
}

func messages(list []store.ClientError) []string {
	var texts []string
	for _, e := range list {
		texts = append(texts, e.Message)
	}
	return texts
}

func TestReportsAreThereOnceWhileTheyAreStored(t *testing.T) {
	s := &shelf{stored: map[string]store.Activity{}}
	n := New(s, "here", slog.New(slog.DiscardHandler))
	now := time.Now()
	n.Saw("shop", store.Seen{At: now, Connected: true})
	n.Report("shop", []wire.AgentError{{Time: now, Key: "k", Message: "first"}})
	is := func(when string, want ...string) {
		t.Helper()
		if got := n.Errors("shop"); !slices.Equal(messages(got), want) || len(got) > 0 && got[0].Node != "here" {
			t.Errorf("%s: got %+v, want %q", when, got, want)
		}
	}
	is("before", "first")
	s.during = func() {
		is("while it is stored", "first")
		n.Report("shop", []wire.AgentError{{Time: now, Key: "k", Message: "second"}})
	}
	n.Flush(t.Context())
	is("after", "first", "second")
	s.during = nil
	n.Flush(t.Context())
	is("at last", "first", "second")
	if n.Flush(t.Context()); s.asked != 2 {
		t.Errorf("the store was asked %d times, want 2: there was nothing more", s.asked)
	}
	if a := s.stored["shop"]; !a.Seen.At.Equal(now) {
		t.Errorf("stored as %+v", a)
	}
}

func TestWhatCannotBeStoredIsKept(t *testing.T) {
	s := &shelf{stored: map[string]store.Activity{}, fault: context.DeadlineExceeded}
	n := New(s, "here", slog.New(slog.DiscardHandler))
	was, is := time.Now(), time.Now().Add(time.Minute)
	for i := range 5 {
		n.Saw(fmt.Sprint("client ", i), store.Seen{At: was})
		n.Report(fmt.Sprint("client ", i), []wire.AgentError{{Time: was, Message: "old"}})
	}
	if n.Flush(t.Context()); s.asked != 1 {
		t.Errorf("a store that is away was asked %d times, want once", s.asked)
	}
	s.fault = errors.New("refused")
	s.during = func() {
		n.Saw("client 0", store.Seen{At: is})
		s.during = nil
	}
	if n.Flush(t.Context()); s.asked != 6 {
		t.Errorf("a store that refuses one was asked %d times for all, want 5", s.asked-1)
	}
	s.fault = nil
	n.Flush(t.Context())
	for i := range 5 {
		id, want := fmt.Sprint("client ", i), was
		if i == 0 {
			want = is
		}
		if a := s.stored[id]; !a.Seen.At.Equal(want) || !slices.Equal(messages(a.Errors), []string{"old"}) {
			t.Errorf("%s is stored as %+v", id, a)
		}
	}
}

func TestReportsAreBounded(t *testing.T) {
	s := &shelf{stored: map[string]store.Activity{}, fault: errors.New("away")}
	n := New(s, "here", slog.New(slog.DiscardHandler))
	for i := range 2 * store.MaxErrors {
		n.Report("shop", []wire.AgentError{{Time: time.Now(), Message: fmt.Sprint(i)}})
		if i%7 == 0 {
			n.Flush(t.Context())
		}
	}
	got := messages(n.Errors("shop"))
	if len(got) != store.MaxErrors || got[len(got)-1] != fmt.Sprint(2*store.MaxErrors-1) {
		t.Errorf("%d are kept, up to %s", len(got), got[len(got)-1])
	}
}
