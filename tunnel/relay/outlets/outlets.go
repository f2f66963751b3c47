// Package outlets runs the stored sinks and follows changes to them. It gives every event
// to all of them.
package outlets

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/sink"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// Store holds the sinks: *store.Sinks.
type Store interface {
	List() []store.StoredSink
	OnChange(f func(name string))
}

// Config contains what a Set is made of.
type Config struct {
	Store   Store
	Node    string // the node that events are attributed to
	Private bool   // allow private addresses as destinations
	Log     *slog.Logger
}

// Set is the sinks that run at this node, while Run runs.
type Set struct {
	cfg Config

	mu     sync.RWMutex
	byName map[string]*outlet
	list   []*sink.Sink // the sinks of byName, for senders
}

type outlet struct {
	changed time.Time // when the stored sink last changed
	sink    *sink.Sink
	end     context.CancelFunc
}

// New returns a Set.
func New(c Config) *Set { return &Set{cfg: c} }

// Access passes an access event to the sinks. It never waits.
func (o *Set) Access(e wire.Access) { o.add(sink.Event{Type: sink.Access, Access: &e}) }

// Audit passes an entry of the audit log to the sinks. It never waits.
func (o *Set) Audit(e audit.Entry) { o.add(sink.Event{Type: sink.Audit, Audit: &e}) }

// Client passes news of a client to the sinks. It never waits.
func (o *Set) Client(c sink.Client) { o.add(sink.Event{Type: sink.Clients, Client: &c}) }

func (o *Set) add(e sink.Event) {
	o.mu.RLock()
	list := o.list
	o.mu.RUnlock()
	for _, s := range list {
		s.Add(e)
	}
}

// Run runs the stored sinks, and follows changes to them, until ctx ends.
func (o *Set) Run(ctx context.Context) {
	changed := make(chan struct{}, 1)
	o.cfg.Store.OnChange(func(string) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	var running sync.WaitGroup
	defer running.Wait()
	for {
		o.match(ctx, &running)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// match starts, changes and stops sinks until they match the stored ones.
func (o *Set) match(ctx context.Context, running *sync.WaitGroup) {
	wanted := map[string]store.StoredSink{}
	for _, s := range o.cfg.Store.List() {
		wanted[s.Name] = s
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byName == nil {
		o.byName = make(map[string]*outlet)
	}
	for name, have := range o.byName {
		if _, ok := wanted[name]; !ok {
			have.end()
			delete(o.byName, name)
		}
	}
	for name, stored := range wanted {
		have := o.byName[name]
		if have != nil && stored.Changed.Equal(have.changed) {
			continue
		}
		c, err := Parse(stored)
		if err != nil {
			o.cfg.Log.Error("a stored sink cannot be read", "sink", name, "error", err)
			if have != nil {
				have.end()
				delete(o.byName, name)
			}
			continue
		}
		if have != nil {
			have.sink.Set(c)
			have.changed = stored.Changed
			continue
		}
		s := sink.New(sink.Options{Name: name, Node: o.cfg.Node, Config: c, Private: o.cfg.Private, Log: o.cfg.Log})
		life, end := context.WithCancel(ctx)
		o.byName[name] = &outlet{stored.Changed, s, end}
		running.Go(func() { _ = s.Run(life) })
	}
	o.list = nil
	for _, v := range o.byName {
		o.list = append(o.list, v.sink)
	}
}

// Parse parses a stored sink.
func Parse(v store.StoredSink) (c sink.Config, err error) {
	if v.Fault != nil {
		return c, v.Fault
	}
	err = json.Unmarshal(v.Document, &c)
	return c, err
}

// State returns the state of a sink here, and whether it runs.
func (o *Set) State(name string) (s sink.State, runs bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if v := o.byName[name]; v != nil {
		return v.sink.State(), true
	}
	return sink.State{}, false
}
