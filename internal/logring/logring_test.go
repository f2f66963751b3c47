package logring

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

type secret struct{}

func (secret) LogValue() slog.Value { return slog.StringValue("hidden") }

func TestNewestLinesAreKept(t *testing.T) {
	ring := New(3, slog.LevelDebug, nil)
	log := slog.New(ring.Handler())
	for message := range strings.SplitSeq("0123456789", "") {
		log.Log(t.Context(), slog.LevelInfo, message) //nolint:sloglint // the messages are the test
	}
	log.Debug("low")
	got := ring.Lines(slog.LevelInfo, time.Time{}, 0)
	if len(got) != 2 || got[0].Message != "8" || got[1].Message != "9" {
		t.Errorf("got %v, want lines 8 and 9", got)
	}
	if got := ring.Lines(slog.LevelDebug, time.Time{}, 1); len(got) != 1 || got[0].Message != "low" {
		t.Errorf("limit 1: got %v, want the newest", got)
	}
	if got := ring.Lines(slog.LevelDebug, time.Time{}, 10); len(got) != 3 {
		t.Errorf("limit 10: got %v, want all three", got)
	}
	if got := ring.Lines(slog.LevelDebug, time.Now().Add(time.Hour), 0); len(got) != 0 {
		t.Errorf("since the future: got %v", got)
	}
}

func TestFieldsKeepGroupsAndHideSecrets(t *testing.T) {
	var text bytes.Buffer
	ring := New(10, slog.LevelInfo, slog.NewTextHandler(&text, nil))
	var followed []Line
	ring.Follow(func(l Line) { followed = append(followed, l) })
	log := slog.New(ring.Handler()).With("a", 1).WithGroup("g").With("b", true)
	log.Warn("said", "token", secret{}, "error", errors.New("cause"), slog.Group("h", "c", 2.5), "nan", math.NaN())
	log.Debug("below")
	lines := ring.Lines(slog.LevelDebug, time.Time{}, 0)
	if len(lines) != 1 || len(followed) != 1 {
		t.Fatalf("got %d lines and %d followed, want 1 and 1", len(lines), len(followed))
	}
	f := lines[0].Fields
	for key, want := range map[string]any{"a": int64(1), "g.b": true, "g.token": "hidden", "g.error": "cause", "g.h.c": 2.5} {
		if f[key] != want {
			t.Errorf("%s: got %v, want %v (all: %v)", key, f[key], want, f)
		}
	}
	if lines[0].Level != "warn" {
		t.Errorf("got level %s, want warn", lines[0].Level)
	}
	if _, err := json.Marshal(lines); err != nil {
		t.Errorf("a line that JSON does not carry: %v", err)
	}
	for _, want := range []string{"a=1", "g.b=true", "g.h.c=2.5"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("next handler: got %q, want %s in it", text.String(), want)
		}
	}
	if strings.Contains(text.String(), "below") {
		t.Errorf("next handler: got %q, want nothing below its level", text.String())
	}
}

func TestFieldsOfALineAreBounded(t *testing.T) {
	ring := New(1, slog.LevelInfo, nil)
	var many []any
	for i := range 2 * maxFields {
		many = append(many, slog.Int(strconv.Itoa(i), i))
	}
	slog.New(ring.Handler()).Info("many", many...)
	if got := len(ring.Lines(slog.LevelInfo, time.Time{}, 0)[0].Fields); got != maxFields {
		t.Errorf("got %d fields, want %d", got, maxFields)
	}
}

func TestLongTextIsCut(t *testing.T) {
	ring := New(1, slog.LevelInfo, nil)
	slog.New(ring.Handler()).Info(strings.Repeat("é", 5000), "x", strings.Repeat("y", 1<<20)) //nolint:sloglint // the message is the test
	line := ring.Lines(slog.LevelInfo, time.Time{}, 0)[0]
	if len(line.Message) > maxText+3 || len(line.Fields["x"].(string)) > maxText+3 {
		t.Errorf("got %d and %d bytes, want at most %d", len(line.Message), len(line.Fields["x"].(string)), maxText+3)
	}
}
