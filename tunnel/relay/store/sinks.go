package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"adit/internal/natural"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/seal"
	"adit/tunnel/relay/store/table"
)

// StoredSink is where events are sent on: a document that package sink reads.
type StoredSink struct {
	Name     string          `json:"name"`
	Document json.RawMessage `json:"document,omitempty"`
	Changed  time.Time       `json:"changed"`

	// Sealed is the document in the bucket where the relay has a secret: it has
	// addresses and the receiver's own secret.
	Sealed []byte `json:"sealed,omitempty"`
	// Fault is why the document could not be opened; there is none then.
	Fault error `json:"-"`
}

// Sinks are by name.
type Sinks struct {
	table *table.Table[StoredSink]
	seal  *seal.Seal // nil: documents are kept as they are
}

// sealName is what a sink's document is sealed as. No setting is called so.
func sealName(name string) string { return "sink/" + name }

// close seals the document of a sink, if the relay has a secret, and open undoes it.
func (s *Sinks) close(v StoredSink) StoredSink {
	if s.seal != nil && len(v.Sealed) == 0 {
		v.Document, v.Sealed = nil, s.seal.Close(sealName(v.Name), v.Document)
	}
	return v
}

func (s *Sinks) open(v StoredSink) StoredSink {
	if len(v.Sealed) == 0 {
		return v
	}
	if seal.Is(v.Sealed) {
		v.Document, v.Fault = s.seal.Open(sealName(v.Name), v.Sealed)
	} else {
		v.Fault = errors.New("it is sealed in a way that this version does not know")
	}
	if v.Fault == nil {
		v.Sealed = nil
	}
	return v
}

// sealAll seals what was stored before the relay had a secret.
func (s *Sinks) sealAll(ctx context.Context) error {
	if s.seal == nil {
		return nil
	}
	for _, v := range s.table.List() {
		if len(v.Sealed) > 0 {
			continue
		}
		_, err := s.table.Change(ctx, v.Name, func(v StoredSink, exists bool) (StoredSink, error) {
			if !exists {
				return v, bucket.ErrNotFound
			}
			return s.close(v), nil // Changed stays: it is the same sink
		})
		if err != nil && !errors.Is(err, bucket.ErrNotFound) {
			return fmt.Errorf("seal sink %s: %w", v.Name, err)
		}
	}
	return nil
}

// Get returns the sink of a name.
func (s *Sinks) Get(name string) (StoredSink, bool) {
	v, _, ok := s.table.Get(name)
	return s.open(v), ok
}

// List returns all sinks by name.
func (s *Sinks) List() []StoredSink {
	list := s.table.List()
	for i := range list {
		list[i] = s.open(list[i])
	}
	slices.SortFunc(list, func(a, b StoredSink) int { return natural.Compare(a.Name, b.Name) })
	return list
}

// Set keeps a sink in place of any other of its name, unless it has something
// against what is there; then it returns that.
func (s *Sinks) Set(ctx context.Context, name string, document []byte, against table.Against[StoredSink]) error {
	return s.Change(ctx, name, func(StoredSink, bool) ([]byte, error) { return document, nil }, against)
}

// Change is Set of what f makes of the sink that it replaces; it may be asked more
// than once.
func (s *Sinks) Change(ctx context.Context, name string, f func(v StoredSink, exists bool) ([]byte, error), against table.Against[StoredSink]) error {
	return s.table.Unless(ctx, name, against, func(against table.Against[StoredSink]) error {
		_, err := s.table.Change(ctx, name, func(v StoredSink, exists bool) (StoredSink, error) {
			if err := against(v, exists); err != nil {
				return v, err
			}
			document, err := f(s.open(v), exists)
			if err != nil {
				return v, err
			}
			return s.close(StoredSink{Name: name, Document: document, Changed: nextTime(v.Changed)}), nil
		})
		return err
	})
}

// Delete removes a sink, or returns ErrNotFound, unless it has something against
// what is there; then it returns that.
func (s *Sinks) Delete(ctx context.Context, name string, against table.Against[StoredSink]) error {
	return s.table.Unless(ctx, name, against, func(against table.Against[StoredSink]) error { return s.table.DropUnless(ctx, name, against) })
}

// OnChange calls f after every change of a sink, of this node or another. f must
// not wait.
func (s *Sinks) OnChange(f func(name string)) {
	s.table.OnChange(func(name string, _ StoredSink, _ bool) { f(name) })
}
