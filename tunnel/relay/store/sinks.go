package store

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// StoredSink is where events are sent on: a document that package sink reads.
type StoredSink struct {
	Name     string          `json:"name"`
	Document json.RawMessage `json:"document"`
	Changed  time.Time       `json:"changed"`
}

// Sinks are by name.
type Sinks struct{ table *table[StoredSink] }

// Get returns the sink of a name.
func (s *Sinks) Get(name string) (StoredSink, bool) {
	v, _, ok := s.table.get(name)
	return v, ok
}

// List returns all sinks by name.
func (s *Sinks) List() []StoredSink {
	list := s.table.list()
	slices.SortFunc(list, func(a, b StoredSink) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Set keeps a sink in place of any other of its name.
func (s *Sinks) Set(ctx context.Context, name string, document []byte) error {
	return s.table.put(ctx, name, StoredSink{Name: name, Document: document, Changed: time.Now().UTC()})
}

// Delete removes a sink, or returns ErrNotFound.
func (s *Sinks) Delete(ctx context.Context, name string) error { return s.table.drop(ctx, name) }

// OnChange calls f after every change of a sink, of this node or another. f must
// not wait.
func (s *Sinks) OnChange(f func(name string, v StoredSink, exists bool)) { s.table.onChange(f) }
