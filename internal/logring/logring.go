// Package logring keeps the newest lines of a log in memory for display, and passes each new one on
// to those who follow the log. It is a slog.Handler to use next to the one that writes the log.
package logring

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"
)

// Line is one line of the log.
type Line struct {
	Time    time.Time      `json:"time"`
	Level   string         `json:"level"` // debug, info, warn, error
	Message string         `json:"message"`
	Fields  map[string]any `json:"fields,omitempty"` // keys of groups are joined by dots
}

// Bounds of one line.
const (
	maxText   = 2048
	maxFields = 32
)

// Ring keeps lines. Use New to create one.
type Ring struct {
	next   slog.Handler // nil: none
	min    slog.Leveler
	follow func(Line)

	mu    sync.Mutex
	lines []Line // a ring once full
	start int
	size  int
}

// New returns a ring of size lines at or above min, which passes every record on to next (if not
// nil).
func New(size int, min slog.Leveler, next slog.Handler) *Ring {
	return &Ring{next: next, min: min, size: size}
}

// Follow makes the ring call f with each new line. It must be called before the first record
// arrives; f must not block or log.
func (r *Ring) Follow(f func(Line)) { r.follow = f }

// Handler returns the handler that feeds the ring.
func (r *Ring) Handler() slog.Handler { return &handler{ring: r, next: r.next} }

// Lines returns the newest limit lines (0: all) at or above min that came after since, oldest
// first.
func (r *Ring) Lines(min slog.Level, since time.Time, limit int) []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []Line{}
	for i := range r.lines {
		line := r.lines[(r.start+i)%len(r.lines)]
		if level(line.Level) >= min && line.Time.After(since) {
			out = append(out, line)
		}
	}
	if limit > 0 && len(out) > limit {
		out = out[len(out)-limit:]
	}
	return out
}

func (r *Ring) add(line Line) {
	r.mu.Lock()
	if len(r.lines) < r.size {
		r.lines = append(r.lines, line)
	} else if r.size > 0 {
		r.lines[r.start] = line
		r.start = (r.start + 1) % r.size
	}
	r.mu.Unlock()
	if r.follow != nil {
		r.follow(line)
	}
}

// ParseLevel parses the name of a level; ok is false if there is no such level.
func ParseLevel(name string) (l slog.Level, ok bool) {
	switch strings.ToLower(name) {
	case "debug":
		return slog.LevelDebug, true
	case "info":
		return slog.LevelInfo, true
	case "warn", "warning":
		return slog.LevelWarn, true
	case "error":
		return slog.LevelError, true
	}
	return 0, false
}

func level(name string) slog.Level { l, _ := ParseLevel(name); return l }

func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	}
	return "error"
}

type handler struct {
	ring   *Ring
	next   slog.Handler
	prefix string
	attrs  []slog.Attr // keys carry their prefix
}

func (h *handler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.ring.min.Level() || (h.next != nil && h.next.Enabled(ctx, l))
}

func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	if rec.Level >= h.ring.min.Level() {
		line := Line{Time: rec.Time.UTC(), Level: levelName(rec.Level), Message: cut(rec.Message)}
		put := func(key string, v slog.Value) { line.put(key, v) }
		for _, a := range h.attrs {
			flatten("", a, put)
		}
		rec.Attrs(func(a slog.Attr) bool { flatten(h.prefix, a, put); return true })
		h.ring.add(line)
	}
	if h.next != nil && h.next.Enabled(ctx, rec.Level) {
		return h.next.Handle(ctx, rec)
	}
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = append([]slog.Attr(nil), h.attrs...)
	for _, a := range attrs {
		a.Key = h.prefix + a.Key
		c.attrs = append(c.attrs, a)
	}
	if h.next != nil {
		c.next = h.next.WithAttrs(attrs)
	}
	return &c
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	c := *h
	c.prefix = h.prefix + name + "."
	if h.next != nil {
		c.next = h.next.WithGroup(name)
	}
	return &c
}

func flatten(prefix string, a slog.Attr, put func(string, slog.Value)) {
	v := a.Value.Resolve() // hides secrets whose type has a LogValue
	if v.Kind() != slog.KindGroup {
		if a.Key != "" {
			put(prefix+a.Key, v)
		}
		return
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	for _, inner := range v.Group() {
		flatten(prefix, inner, put)
	}
}

func (l *Line) put(key string, v slog.Value) {
	if l.Fields == nil {
		l.Fields = make(map[string]any)
	}
	if len(l.Fields) >= maxFields {
		return
	}
	switch v.Kind() {
	case slog.KindBool, slog.KindInt64, slog.KindUint64:
		l.Fields[key] = v.Any()
	case slog.KindFloat64:
		if f := v.Float64(); math.IsNaN(f) || math.IsInf(f, 0) {
			l.Fields[key] = v.String() // JSON has no such number
			return
		}
		l.Fields[key] = v.Any()
	default: // also what JSON cannot carry, as an error or a duration
		l.Fields[key] = cut(v.String())
	}
}

func cut(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
