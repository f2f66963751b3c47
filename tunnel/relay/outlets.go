package relay

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/sink"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// outlets are the sinks that run at this node.
type outlets struct {
	mu     sync.RWMutex
	byName map[string]*outlet
	list   []*sink.Sink // of byName, for those who add
}

type outlet struct {
	changed time.Time // when what is stored of it was
	sink    *sink.Sink
	end     context.CancelFunc
}

// access and audit give an event to the sinks. They never wait.
func (o *outlets) access(e wire.Access) { o.add(sink.Event{Type: sink.Access, Access: &e}) }

func (o *outlets) audit(e audit.Entry) { o.add(sink.Event{Type: sink.Audit, Audit: &e}) }

func (o *outlets) add(e sink.Event) {
	o.mu.RLock()
	list := o.list
	o.mu.RUnlock()
	for _, s := range list {
		s.Add(e)
	}
}

// runSinks runs the stored sinks, and follows their changes, until ctx ends.
func (r *Relay) runSinks(ctx context.Context) {
	changed := make(chan struct{}, 1)
	r.store.Sinks.OnChange(func(string) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	var running sync.WaitGroup
	defer running.Wait()
	for {
		r.matchSinks(ctx, &running)
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// matchSinks begins, changes and ends sinks until they are those that are stored.
func (r *Relay) matchSinks(ctx context.Context, running *sync.WaitGroup) {
	wanted := map[string]store.StoredSink{}
	for _, s := range r.store.Sinks.List() {
		wanted[s.Name] = s
	}
	o := &r.sinks
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
		c, err := sinkConfig(stored)
		if err != nil {
			r.log.Error("a stored sink cannot be read", "sink", name, "error", err)
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
		s := sink.New(sink.Options{Name: name, Node: r.node, Config: c, Private: r.cfg.Sinks.AllowPrivate, Log: r.log})
		life, end := context.WithCancel(ctx)
		o.byName[name] = &outlet{stored.Changed, s, end}
		running.Go(func() { _ = s.Run(life) })
	}
	o.list = nil
	for _, v := range o.byName {
		o.list = append(o.list, v.sink)
	}
}

// sinkConfig reads what is stored of a sink.
func sinkConfig(v store.StoredSink) (c sink.Config, err error) {
	if v.Fault != nil {
		return c, v.Fault
	}
	err = json.Unmarshal(v.Document, &c)
	return c, err
}

// sinkState is how a sink fares here.
func (r *Relay) sinkState(name string) sink.State {
	r.sinks.mu.RLock()
	defer r.sinks.mu.RUnlock()
	if v := r.sinks.byName[name]; v != nil {
		return v.sink.State()
	}
	return sink.State{}
}
