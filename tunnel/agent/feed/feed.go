// Package feed numbers events and holds the newest of them for readers. Readers pull, so one that
// is slow or was away costs nothing, and learns how many events it missed. What the events say is
// left to the publisher.
package feed

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// size is how many events are held for readers that fell behind or were away for a while.
const size = 2048

// Event is one entry of a feed. Each event's ID is one higher than the previous one's.
type Event struct {
	ID   uint64    `json:"id"`
	Type string    `json:"type"`
	Time time.Time `json:"time"`
	Data any       `json:"data"`
}

// TypeMissed is the Type of an event whose Data is a Missed. A reader that cannot resume without a
// gap gets it first.
const TypeMissed = "missed"

// Missed tells a reader what the feed no longer holds. Its event's ID is that of the last lost
// event, so the next event follows directly.
type Missed struct {
	Missed uint64 `json:"missed"`
	// Restarted is set if the id to resume from belongs to another daemon; Missed then counts only
	// the lost events of this one.
	Restarted bool `json:"restarted,omitempty"`
}

// Feed numbers events and holds the newest. Readers pull, so a slow reader causes gaps only for
// itself.
type Feed struct {
	mu      sync.Mutex
	ring    []Event
	base    uint64        // the first event's id less one
	last    uint64        // id of the newest event; base: none yet
	changed chan struct{} // closed by the next event; nil while nobody waits
}

// New returns the feed of a run that started at the given time.
func New(start time.Time) *Feed { return begin(newBase(start)) }

// begin returns a feed whose ids start after base.
func begin(base uint64) *Feed { return &Feed{base: base, last: base} }

// newBase returns where the ids of a run begin that starts at the given time. As long as the clock
// advances, they are above those of earlier runs. Otherwise, as on a machine without a hardware
// clock, they are random among 2^21, so that ids of another run are not mistaken for this one's.
// JavaScript can represent them: they are below 2^53 until the year 2106.
func newBase(at time.Time) uint64 { return uint64(at.Unix())<<21 | rand.Uint64N(1<<21) }

// Publish adds an event. If data has a method Data() any, that is called when the event is read,
// and its result is used instead.
func (f *Feed) Publish(kind string, data any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	e := Event{ID: f.last, Type: kind, Time: time.Now().UTC(), Data: data}
	if len(f.ring) < size {
		f.ring = append(f.ring, e)
	} else {
		f.ring[(f.last-f.base-1)%size] = e
	}
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// later is data that is computed when its event is read.
type later interface{ Data() any }

// after returns the event that follows id, or what was missed in its place, or else a channel that
// is closed when there is one.
func (f *Feed) after(id uint64) (Event, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.last - uint64(len(f.ring)) + 1
	switch {
	case id > f.last || id < f.base:
		e := Event{ID: oldest - 1, Type: TypeMissed, Time: time.Now().UTC(), Data: Missed{Missed: oldest - 1 - f.base, Restarted: true}}
		return e, nil
	case id == f.last:
		if f.changed == nil {
			f.changed = make(chan struct{})
		}
		return Event{}, f.changed
	case id+1 < oldest:
		e := Event{ID: oldest - 1, Type: TypeMissed, Time: time.Now().UTC(), Data: Missed{Missed: oldest - 1 - id}}
		return e, nil
	}
	return f.ring[(id-f.base)%size], nil
}

// Subscription is one reader's position in a feed. It holds nothing that must be closed, and must
// not be used concurrently.
type Subscription struct {
	feed *Feed
	id   uint64 // of the last event given out
}

// Subscribe starts after the event with the id after; if nil, with the next one.
func (f *Feed) Subscribe(after *uint64) *Subscription {
	s := &Subscription{feed: f}
	if after != nil {
		s.id = *after
		return s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.id = f.last
	return s
}

// Last returns the id of the last event returned or skipped.
func (s *Subscription) Last() uint64 { return s.id }

// Next waits for the next event. A reader that is too slow gets an event of TypeMissed in place of
// those it lost. If ctx ends first, Next returns ctx's error.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		e, changed := s.feed.after(s.id)
		if changed == nil {
			s.id = e.ID
			if l, ok := e.Data.(later); ok {
				e.Data = l.Data()
			}
			return e, nil
		}
		select {
		case <-ctx.Done():
			return Event{}, ctx.Err()
		case <-changed:
		}
	}
}
