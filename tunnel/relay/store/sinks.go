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

// StoredSink says where events are forwarded, in a document that package sink parses.
type StoredSink struct {
	Name     string          `json:"name"`
	Document json.RawMessage `json:"document,omitempty"`
	Changed  time.Time       `json:"changed"`

	// Sealed is the sealed document, if the relay has a secret: the document contains
	// addresses and the receiver's own secret.
	Sealed []byte `json:"sealed,omitempty"`
	// Fault is the reason why the document could not be opened, in which case Document is
	// empty.
	Fault error `json:"-"`
}

// Sinks holds the sinks by name.
type Sinks struct {
	table *table.Table[StoredSink]
	seal  *seal.Seal // nil: documents are stored unsealed
}

// sealName returns the name under which a sink's document is sealed. No setting has such a
// name.
func sealName(name string) string { return "sink/" + name }

// close seals a sink's document if the relay has a secret, and open undoes that.
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
			return s.close(v), nil // Changed stays the same, since the sink does
		})
		if err != nil && !errors.Is(err, bucket.ErrNotFound) {
			return fmt.Errorf("seal sink %s: %w", v.Name, err)
		}
	}
	return nil
}

// Get returns the sink with a name.
func (s *Sinks) Get(name string) (StoredSink, bool) {
	v, _, ok := s.table.Get(name)
	return s.open(v), ok
}

// List returns all sinks, sorted by name.
func (s *Sinks) List() []StoredSink {
	list := s.table.List()
	for i := range list {
		list[i] = s.open(list[i])
	}
	slices.SortFunc(list, func(a, b StoredSink) int { return natural.Compare(a.Name, b.Name) })
	return list
}

// Set stores a sink and replaces any other of the same name. If against returns an error for
// the existing sink, Set changes nothing and returns that error.
func (s *Sinks) Set(ctx context.Context, name string, document []byte, against table.Against[StoredSink]) error {
	return s.Change(ctx, name, func(StoredSink, bool) ([]byte, error) { return document, nil }, against)
}

// Change is Set with a document that f makes from the existing sink. f may be called more than
// once.
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

// Delete removes a sink, or returns ErrNotFound. If against returns an error for the existing
// sink, Delete removes nothing and returns that error.
func (s *Sinks) Delete(ctx context.Context, name string, against table.Against[StoredSink]) error {
	return s.table.Unless(ctx, name, against, func(against table.Against[StoredSink]) error { return s.table.DropUnless(ctx, name, against) })
}

// OnChange calls f after every change of a sink, by this node or another. f must not block.
func (s *Sinks) OnChange(f func(name string)) {
	s.table.OnChange(func(name string, _ StoredSink, _ bool) { f(name) })
}
