package ledger

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/auditlog"
	"adit/tunnel/relay/store/natstest"
)

const patience = 30 * time.Second

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !is(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("not so in time: %s", what)
		}
	}
}

// lines returns what waits in a ledger's folder, by name. A line that is being written is
// there twice, once under a temporary name.
func lines(t *testing.T, l *Ledger) []string {
	t.Helper()
	list, err := os.ReadDir(l.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// run runs a ledger until the test ends.
func run(t *testing.T, l *Ledger) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
}

// TestLateLineRemembersWhatWasTried checks that a waiting line whose writing was not
// confirmed is recognised at the next attempt: the log may have it, and would otherwise
// have it twice.
func TestLateLineRemembersWhatWasTried(t *testing.T) {
	server := natstest.Start(t)
	s, err := store.Open(t.Context(), store.Config{Dir: t.TempDir(), Domain: "relay.test", URLs: []string{server.URL()}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	written := make(chan audit.Entry, 10)
	l, err := Open(Config{
		DataDir: t.TempDir(), Node: "here", Audit: s.Audit, Written: func(e audit.Entry) { written <- e },
		Wait: 500 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	back := server.StreamAway("adit_audit")
	line := auditlog.Late{At: time.Now(), Actor: audit.Actor{Kind: audit.KindUser, Name: "ann"}, Action: "client.set", Target: "made"}
	if err := l.add(line); err != nil { // while others waited, so that it was not tried yet
		t.Fatal(err)
	}
	run(t, l)
	var kept auditlog.Late
	eventually(t, "the try is noted", func() bool {
		list := lines(t, l)
		if len(list) != 1 {
			return false
		}
		kept, err = l.read(list[0])
		return err == nil && kept.Tried != nil
	})
	if kept.Target != line.Target || kept.Actor != line.Actor || kept.Tried.Target != line.Target || kept.Tried.Seq != 1 {
		t.Errorf("it is kept as %+v", kept)
	}
	back()
	eventually(t, "nothing waits for the audit log", func() bool { return l.Waiting() == 0 && len(lines(t, l)) == 0 })
	if e := <-written; e.Action != "client.set" || e.Target != "made" || len(written) > 0 {
		t.Errorf("the audit log has %+v and %d more", e, len(written))
	}
}

// nobody is an audit log that is unavailable.
type nobody struct{}

func (nobody) Append(context.Context, audit.Change) (audit.Entry, error) {
	return audit.Entry{}, errors.New("it is away")
}

func (nobody) AppendLate(context.Context, auditlog.Late) (audit.Entry, error) {
	return audit.Entry{}, errors.New("it is away")
}

func TestChangesAreNotBegunWhileTooManyLinesWait(t *testing.T) {
	l, err := Open(Config{DataDir: t.TempDir(), Audit: nobody{}, Most: 4, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l.Record(t.Context(), "client.add", "first", nil)
	end, err := l.Begin(t.Context(), "POST /api/v1/clients")
	if err != nil {
		t.Fatalf("one line waits, and no change is begun: %v", err)
	}
	l.Record(t.Context(), "client.add", "second", nil)
	end(nil)
	if _, err := l.Begin(t.Context(), "POST /api/v1/clients"); !errors.Is(err, ErrFull) {
		t.Errorf("two of four lines wait, and a change is begun: %v", err)
	}
	l.Record(t.Context(), "login.refused", "third", nil)
	l.Record(t.Context(), "login.refused", "fourth", nil)
	if err := l.add(auditlog.Late{Action: "login.refused"}); err == nil || l.Waiting() != 4 {
		t.Errorf("one more line waits: %d", l.Waiting())
	}
}

// TestChangesThatEndedWellLeaveNothing ends changes in all possible ways. Only those with
// an unknown outcome leave a waiting line.
func TestChangesThatEndedWellLeaveNothing(t *testing.T) {
	l, err := Open(Config{DataDir: t.TempDir(), Audit: nobody{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		how     error
		waiting int
	}{{nil, 0}, {errors.New("refused"), 0}, {context.Canceled, 1}} {
		end, err := l.Begin(t.Context(), "a change")
		if err != nil {
			t.Fatal(err)
		}
		if n := len(lines(t, l)); n != 1 {
			t.Fatalf("while it is made there are %d files, want one", n)
		}
		if end(c.how); l.Waiting() != c.waiting || len(lines(t, l)) != c.waiting {
			t.Errorf("after %v: %d lines wait, %d files", c.how, l.Waiting(), len(lines(t, l)))
		}
	}
	again, err := Open(Config{DataDir: filepath.Dir(l.dir), Audit: nobody{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil || again.Waiting() != 1 || !slices.Equal(again.late, lines(t, l)) {
		t.Errorf("after a restart: %v, %v", again, err)
	}
}
