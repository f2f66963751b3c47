package operator

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/outlets"
	"adit/tunnel/relay/sink"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/table"
	"adit/tunnel/wire"
)

// auditLook is how many entries one question examines. Each is read from the store, and a
// search for something that does not exist must not keep it busy.
const auditLook = 3000

// AuditList returns a page of the audit log, newest first.
func (o *Operator) AuditList(ctx context.Context, q console.AuditQuestion) (console.AuditPage, error) {
	page := console.AuditPage{Items: []audit.Entry{}}
	looked, last := 0, uint64(0)
	err := o.cfg.Store.Audit.Newest(ctx, q.Before, func(e audit.Entry) bool {
		if looked == auditLook || len(page.Items) == max(q.Limit, 1) {
			page.Next = last
			return false
		}
		looked, last = looked+1, e.Seq
		if q.Finds(e) {
			page.Items = append(page.Items, e)
		}
		return true
	})
	return page, err
}

// AuditVerify checks the whole chain. wanted is a head noted earlier.
func (o *Operator) AuditVerify(ctx context.Context, wanted string) (audit.Result, error) {
	return o.cfg.Store.Audit.Verify(ctx, strings.ToLower(strings.TrimSpace(wanted)))
}

// AuditExport calls give with every entry, oldest first.
func (o *Operator) AuditExport(ctx context.Context, give func(audit.Entry) error) error {
	return o.cfg.Store.Audit.Each(ctx, func(_ uint64, e audit.Entry, fault error) error {
		if fault != nil {
			return fault
		}
		return give(e)
	})
}

func (o *Operator) shownSink(stored store.StoredSink) console.Sink {
	c, err := outlets.Parse(stored)
	st, _ := o.cfg.Sinks.State(stored.Name)
	if err != nil {
		o.cfg.Log.Error("a stored sink cannot be read", "sink", stored.Name, "error", err)
		st.LastError = err.Error()
	}
	v := console.Sink{
		Tag: sinkTag(stored), Name: stored.Name, Type: c.Type, URL: c.URL, HasSecret: c.Secret != "", Address: c.Address, CA: c.CA, Facility: c.Facility, Events: c.Events,
		RefusedOnly: c.RefusedOnly, Enabled: c.On(), ChangedAt: stored.Changed,
		State: console.SinkState{Node: o.cfg.Node, Sent: st.Sent, Failed: st.Failed, Dropped: st.Dropped, Queued: st.Queued, LastError: st.LastError},
	}
	if !st.LastErrorAt.IsZero() {
		v.State.LastErrorAt = &st.LastErrorAt
	}
	if !st.LastSentAt.IsZero() {
		v.State.LastSentAt = &st.LastSentAt
	}
	return v
}

// SinkList returns the stored sinks, with the state of each at this node.
func (o *Operator) SinkList() []console.Sink {
	list := []console.Sink{}
	for _, s := range o.cfg.Store.Sinks.List() {
		list = append(list, o.shownSink(s))
	}
	return list
}

const maxSinks = 20

// Sink returns one of SinkList.
func (o *Operator) Sink(name string) (console.Sink, error) {
	stored, ok := o.cfg.Store.Sinks.Get(name)
	if !ok {
		return console.Sink{}, sinkError(name, bucket.ErrNotFound)
	}
	return o.shownSink(stored), nil
}

func sinkTag(v store.StoredSink) string { return timeTag(v.Changed) }

// expectSink returns the check for a change that expects a certain version of a sink.
func expectSink(name string, e console.Expected) table.Against[store.StoredSink] {
	return expecting(e, sinkTag, "the sink %s has changed since it was read, so nothing was changed; read it again", name)
}

// SetSink stores a sink. If the secret is left out, the existing one is kept.
func (o *Operator) SetSink(ctx context.Context, name string, document []byte, e console.Expected) (console.Sink, error) {
	if !sink.ValidName(name) {
		return console.Sink{}, bad(http.StatusBadRequest, "invalid_parameter", "name", "a sink's name has 1 to 32 lower-case letters, digits, hyphens or underscores, and begins and ends with a letter or digit")
	}
	c, err := sink.Parse(document, o.cfg.Settings.Sinks.AllowPrivate)
	var field *sink.FieldError
	if errors.As(err, &field) {
		return console.Sink{}, bad(http.StatusBadRequest, "invalid_parameter", field.Field, "%s", field.Error())
	}
	if err != nil {
		return console.Sink{}, err
	}
	if _, had := o.cfg.Store.Sinks.Get(name); !had && len(o.cfg.Store.Sinks.List()) >= maxSinks {
		return console.Sink{}, bad(http.StatusBadRequest, "invalid_parameter", "name", "there are %d sinks already, the most there may be", maxSinks)
	}
	err = o.cfg.Store.Sinks.Change(ctx, name, func(old store.StoredSink, had bool) ([]byte, error) {
		next := c
		if had && c.Secret == "" && c.Type == sink.Webhook {
			if before, err := outlets.Parse(old); err == nil && before.URL == c.URL { // another URL must not get the secret
				next.Secret = before.Secret
			}
		}
		return json.Marshal(next)
	}, expectSink(name, e))
	if err != nil {
		return console.Sink{}, err
	}
	o.cfg.Log.Info("sink set", "sink", name)
	stored, _ := o.cfg.Store.Sinks.Get(name)
	v := o.shownSink(stored)
	o.Record(ctx, "sink.set", name, map[string]any{
		"type": v.Type, "url": v.BareURL(), "address": v.Address, "events": v.Events, "refused_only": v.RefusedOnly, "enabled": v.Enabled, "has_secret": v.HasSecret,
	})
	return v, nil
}

// DeleteSink deletes a sink, and drops what is queued for it.
func (o *Operator) DeleteSink(ctx context.Context, name string, e console.Expected) error {
	if err := o.cfg.Store.Sinks.Delete(ctx, name, expectSink(name, e)); err != nil {
		return sinkError(name, err)
	}
	o.cfg.Log.Info("sink deleted", "sink", name)
	o.Record(ctx, "sink.delete", name, nil)
	return nil
}

func sinkError(name string, err error) error {
	if errors.Is(err, bucket.ErrNotFound) {
		return bad(http.StatusNotFound, "not_found", "", "there is no sink named %s", name)
	}
	return err
}

// testEvent returns an event of a kind that the sink wants, recognisable as a test.
func (o *Operator) testEvent(c sink.Config) sink.Event {
	now := time.Now().UTC()
	if slices.Contains(c.Events, sink.Clients) && !slices.Contains(c.Events, sink.Access) {
		return sink.Event{Type: sink.Clients, Client: &sink.Client{Time: now, State: sink.Connected, Client: "TEST"}}
	}
	return sink.Event{Type: sink.Access, Access: &wire.Access{
		Time: now, Node: o.cfg.Node, Endpoint: "ep_test", Visitor: "192.0.2.1", Method: "TEST", Host: o.cfg.Settings.Domain, Path: "/",
	}}
}

// TestSink sends one event to a sink immediately, bypassing its queue.
func (o *Operator) TestSink(ctx context.Context, name string) (console.SinkTest, error) {
	stored, ok := o.cfg.Store.Sinks.Get(name)
	if !ok {
		return console.SinkTest{}, sinkError(name, bucket.ErrNotFound)
	}
	c, err := outlets.Parse(stored)
	if err != nil {
		return console.SinkTest{Error: err.Error()}, nil
	}
	o.Record(ctx, "sink.test", name, nil)
	s := sink.New(sink.Options{Name: name, Node: o.cfg.Node, Config: c, Private: o.cfg.Settings.Sinks.AllowPrivate})
	defer s.Close()
	if err := s.Test(ctx, o.testEvent(c)); err != nil {
		return console.SinkTest{Error: err.Error()}, nil
	}
	return console.SinkTest{OK: true}, nil
}
