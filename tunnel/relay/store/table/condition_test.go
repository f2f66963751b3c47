package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/natstest"
)

// TestConditionIsBelievedTheSecondTime also checks that it is reported once.
func TestConditionIsBelievedTheSecondTime(t *testing.T) {
	var log bytes.Buffer
	s := NewSet(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for i, step := range []struct {
		found, want Condition
		told        string // part of the line that is logged; empty: none
	}{
		{Here, Here, ""},
		{Here, Here, ""},
		{Lost, Here, ""}, // a server that has just started
		{Here, Here, ""},
		{Silent, Here, ""},
		{Lost, Here, ""},
		{Lost, Lost, "level=ERROR"},
		{Lost, Lost, ""},
		{Silent, Lost, ""},
		{Silent, Silent, "level=WARN"},
		{Here, Silent, ""},
		{Here, Here, "level=INFO"},
		{Here, Here, ""},
	} {
		log.Reset()
		s.found(step.found)
		if s.Condition() != step.want || (log.Len() > 0) != (step.told != "") || !strings.Contains(log.String(), step.told) {
			t.Errorf("step %d, %s: got %s and %q, want %s and %q", i, step.found, s.Condition(), log.String(), step.want, step.told)
		}
	}
}

// TestConditionIsThatOfItsWorstPart also considers whether the store may have been replaced.
func TestConditionIsThatOfItsWorstPart(t *testing.T) {
	n := begin(t, natstest.Start(t).URL())
	tab := n.table(t, "policies")
	put(t, tab, "domain.a", "asks for a password")
	if err := tab.keepUp(t.Context()); err != nil || conditionOf(err) != Here {
		t.Errorf("a bucket that is there: got %v", err)
	}
	if err := tab.js.DeleteKeyValue(t.Context(), tab.kv.Bucket()); err != nil {
		t.Fatal(err)
	}
	if err := tab.keepUp(t.Context()); conditionOf(err) != Lost {
		t.Errorf("a bucket that is not there any more: got %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tab.keepUp(gone); conditionOf(err) != Silent {
		t.Errorf("a bucket that does not answer: got %v", err)
	}
	for _, of := range [][3]Condition{{Here, Here, Here}, {Here, Silent, Silent}, {Silent, Here, Silent}, {Lost, Silent, Lost}, {Here, Lost, Lost}} {
		if got := worse(of[0], of[1]); got != of[2] {
			t.Errorf("%s and %s: got %s", of[0], of[1], got)
		}
	}
}

// TestAnotherStoreIsNoticed also covers a store without an ID.
func TestAnotherStoreIsNoticed(t *testing.T) {
	var says string
	var fails error
	s := NewSet(Config{Log: slog.New(slog.DiscardHandler)})
	s.Of("one", func(context.Context) (string, error) { return says, fails })
	for i, step := range []struct {
		says  string
		fails error
		want  Condition
	}{
		{"one", nil, Here},
		{"", nil, Lost},
		{"one", nil, Here},
		{"", errors.New("no answer"), Silent},
		{"", fmt.Errorf("ask: %w", &jetstream.APIError{ErrorCode: 10059}), Lost},
		{"other", nil, Lost},
		{"one", nil, Here},
	} {
		says, fails = step.says, step.fails
		if own := s.isOwn(t.Context()); own != (step.says == "one") {
			t.Errorf("step %d: is the one that was opened: %t", i, own)
		}
		if got := conditionOf(s.theirs(t.Context())); got != step.want {
			t.Errorf("step %d: got %s, want %s", i, got, step.want)
		}
	}
}

// together is a table whose leader answers when those of all others were asked.
type together struct {
	followed
	asked *sync.WaitGroup
	err   error
}

func (t together) keepUp(context.Context) error {
	t.asked.Done()
	t.asked.Wait()
	return t.err
}

// TestTablesAreAskedAtOnce checks that a table that does not answer does not hold up the
// others.
func TestTablesAreAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which ends where all wait for each other
		s := NewSet(Config{Log: slog.New(slog.DiscardHandler)})
		var asked sync.WaitGroup
		for name, err := range map[string]error{"clients": nil, "claims": context.DeadlineExceeded, "policies": nil} {
			asked.Add(1)
			s.byName[name] = together{asked: &asked, err: err}
		}
		if got := s.ask(t.Context()); got != Silent {
			t.Errorf("got %s, want what the worst of them is", got)
		}
	})
}
