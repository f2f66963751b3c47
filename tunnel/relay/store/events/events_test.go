package events

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/engine"
	"adit/tunnel/relay/store/engine/enginetest"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/wire"
)

// kept is a log with its engine.
type kept struct {
	*Log
	engine *engine.Engine
}

func (k kept) Close() { k.engine.Close() }

// open opens a log in a folder, or on the servers at some URLs.
func open(tb testing.TB, dir string, urls ...string) kept {
	tb.Helper()
	e, err := engine.Open(engine.Config{Dir: dir, URLs: urls, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := Open(tb.Context(), e, Config{Took: new(bucket.Meter), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { e.Close() })
	return kept{l, e}
}

// TestWhatWasNotThereIsUsedOnceItIs has a stream that the cluster answers for only after the
// log has been opened.
func TestWhatWasNotThereIsUsedOnceItIs(t *testing.T) {
	e := &enginetest.Later{Engine: open(t, t.TempDir(), natstest.Start(t).URL()).engine, Away: true}
	l, err := Open(t.Context(), e, Config{Took: new(bucket.Meter), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	event := []wire.Access{{Endpoint: "ep_1", Time: time.Now()}}
	if _, err := l.Kept(t.Context()); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("while nobody answers: %v", err)
	}
	if err := l.Append(t.Context(), event); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("while nobody answers: %v", err)
	}
	e.Away = false
	if err := l.Append(t.Context(), event); err != nil {
		t.Error(err)
	}
	if kept, err := l.Kept(t.Context()); err != nil || kept.Bytes == 0 {
		t.Errorf("%d bytes of events are kept, %v", kept.Bytes, err)
	}
}

// TestEventsThatMayNotBeKeptSayNothingOfTheStore has a NATS that reserves no space for events
// but accepts everything else.
func TestEventsThatMayNotBeKeptSayNothingOfTheStore(t *testing.T) {
	e, took := open(t, t.TempDir(), natstest.StartSmall(t, 8<<20).URL()).engine, new(bucket.Meter)
	l, err := Open(t.Context(), e, Config{Took: took, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	err = l.Append(t.Context(), []wire.Access{{Endpoint: "ep_1", Time: time.Now()}})
	if !bucket.IsFull(err) || !strings.Contains(err.Error(), "limits.access_bytes") {
		t.Errorf("got %v, want that there is no room for so many, and which key says so", err)
	}
	if took.Full() {
		t.Error("the store is said to have no room for anything")
	}
}

func TestStreamIsMadeWithItsCopies(t *testing.T) {
	copies := enginetest.Thrice{}
	if _, err := Open(t.Context(), copies, Config{}); err != nil || copies["adit_access"] != 3 {
		t.Errorf("copies are asked for as %v, %v, want 3", copies, err)
	}
}

// TestSearchGoesOnBehindABatchThatCannotBeRead puts nonsense among the batches.
func TestSearchGoesOnBehindABatchThatCannotBeRead(t *testing.T) {
	var said bytes.Buffer
	s := open(t, t.TempDir())
	s.log = slog.New(slog.NewTextHandler(&said, nil))
	for _, host := range []string{"old", "", "new"} {
		if host != "" {
			if err := s.Append(t.Context(), []wire.Access{{Time: time.Now(), Host: host}}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		msg := nats.NewMsg(subject)
		msg.Header.Set(headerEncoding, encodingS2)
		msg.Data = []byte("nonsense")
		if _, err := s.js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		var hosts []string
		_, done, err := s.Walk(t.Context(), Scan{}, func(a *wire.Access) bool {
			hosts = append(hosts, a.Host)
			return true
		})
		if err != nil || !done || !slices.Equal(hosts, []string{"new", "old"}) {
			t.Errorf("got %q, done %v, %v; want new and old", hosts, done, err)
		}
	}
	if n := strings.Count(said.String(), "batch=2"); n != 1 {
		t.Errorf("the log has the batch %d times, want once:\n%s", n, said.String())
	}
}

func TestEventsComeBackInOrder(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s := open(t, dir)
	for i := range 5 {
		if err := s.Append(ctx, []wire.Access{{Path: fmt.Sprint(2 * i)}, {Path: fmt.Sprint(2*i + 1)}}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	s = open(t, dir)
	got, err := s.Latest(ctx, 4)
	if err != nil || len(got) != 4 || got[0].Path != "6" || got[3].Path != "9" {
		t.Errorf("got %v, %v; want 6 to 9", got, err)
	}
}

// TestWholeLogIsSearchedInTurns writes more events than one turn reads.
func TestWholeLogIsSearchedInTurns(t *testing.T) {
	s, ctx := open(t, t.TempDir()), t.Context()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const batches, size = 40, 50
	for b := range batches {
		var batch []wire.Access
		for i := range size {
			n := b*size + i
			batch = append(batch, wire.Access{Time: start.Add(time.Duration(n) * time.Second), Path: fmt.Sprint("/", n), Status: 200 + n%2})
		}
		if err := s.Append(ctx, batch); err != nil {
			t.Fatal(err)
		}
	}
	// In turns of three batches and pages of 7, every event once, newest first.
	next, want, turns := Cursor{}, batches*size-1, 0
	for done := false; !done; turns++ {
		taken := 0
		var err error
		cursor, ok := ParseCursor(next.String())
		if !ok {
			t.Fatalf("the cursor %s does not come back", next)
		}
		next, done, err = s.Walk(ctx, Scan{From: cursor, Batches: 3}, func(a *wire.Access) bool {
			if a.Path != fmt.Sprint("/", want) {
				t.Fatalf("got %s, want /%d", a.Path, want)
			}
			want--
			taken++
			return taken < 7
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want != -1 {
		t.Errorf("%d events were not seen", want+1)
	}
	count := 0
	since, until := start.Add(100*time.Second), start.Add(199*time.Second)
	if _, done, err := s.Walk(ctx, Scan{Since: since, Until: until}, func(*wire.Access) bool { count++; return true }); err != nil || !done || count != 100 {
		t.Errorf("in a span: %d events, done %v, %v; want 100", count, done, err)
	}
	if _, done, err := s.Walk(ctx, Scan{Since: time.Now().Add(time.Hour), Batches: 1}, func(*wire.Access) bool { return true }); err != nil || !done {
		t.Errorf("since a time to come: done %v, %v", done, err)
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add("12-3")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := ParseCursor(text)
		if again, same := ParseCursor(c.String()); ok && (!same || again != c) {
			t.Errorf("%q: %+v came back as %+v", text, c, again)
		}
	})
}

func TestEventsOfAllNodesAreFollowed(t *testing.T) {
	url := natstest.Start(t).URL()
	a, b := open(t, t.TempDir(), url), open(t, t.TempDir(), url)
	begun, got, done := make(chan struct{}), make(chan string, 10), make(chan error, 1)
	stop := errors.New("enough")
	go func() {
		first := true
		done <- a.Follow(t.Context(), func(batch []wire.Access, _ int) error {
			if first {
				first = false
				close(begun)
				return nil
			}
			for _, e := range batch {
				got <- e.Path
			}
			if batch[0].Path == "/b" {
				return stop
			}
			return nil
		})
	}()
	select {
	case <-begun:
	case err := <-done:
		t.Fatal(err)
	}
	if err := a.Append(t.Context(), []wire.Access{{Path: "/a"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Append(t.Context(), []wire.Access{{Path: "/b"}}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if one, two := <-got, <-got; one != "/a" || two != "/b" {
		t.Errorf("got %s and %s", one, two)
	}
}
