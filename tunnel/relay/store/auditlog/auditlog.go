// Package auditlog keeps the chain of audit entries in a stream that does not allow deletion.
// Writers on several nodes build one chain: an entry is accepted only if its writer knew the
// previous one. Package audit defines how entries are chained.
package auditlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/engine"
)

const (
	streamName = "adit_audit"
	subject    = "adit.audit"
	maxTries   = 100
)

// Log is the chain of audit entries. It can only grow: the stream does not allow deletion, and
// an entry is accepted only if its writer knew the previous one.
type Log struct {
	js     jetstream.JetStream
	stream *engine.Stream
	took   *bucket.Meter

	turn chan struct{} // has room for one value: whoever has filled it may write; guards the fields below
	seq  uint64        // of the newest entry known here
	head string        // its hash
}

// Engine is what the log is stored in.
type Engine interface {
	Stream(ctx context.Context, name, part string, make func(ctx context.Context, js jetstream.JetStream, copies int) (jetstream.Stream, error)) (*engine.Stream, error)
	JetStream() jetstream.JetStream
}

// Open opens the log, creating it if necessary. took measures its writes.
func Open(ctx context.Context, e Engine, took *bucket.Meter) (*Log, error) {
	l := &Log{turn: make(chan struct{}, 1), js: e.JetStream(), took: took, head: audit.Root}
	var err error
	l.stream, err = e.Stream(ctx, streamName, "audit log", func(ctx context.Context, js jetstream.JetStream, copies int) (jetstream.Stream, error) {
		stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: streamName, Subjects: []string{subject}, Storage: jetstream.FileStorage,
			Replicas: copies, DenyDelete: true, DenyPurge: true,
		})
		if err != nil {
			return nil, fmt.Errorf("open store of the audit log: %w", err)
		}
		return stream, nil
	})
	return l, err
}

// Late is a change that could not be written to the log when it was made. A relay keeps it as
// JSON until it can be written.
type Late struct {
	At     time.Time       `json:"at"`
	Node   string          `json:"node,omitempty"`
	Actor  audit.Actor     `json:"actor"`
	Action string          `json:"action"`
	Target string          `json:"target,omitempty"`
	Detail json.RawMessage `json:"detail,omitempty"`
	// Tried is the entry of a write that got no answer; the log may contain it.
	Tried *audit.Entry `json:"tried,omitempty"`
}

// Append writes a change as the next entry of the chain. Several nodes may do so at the same
// time: a node that was not first tries again after the other's entry. While the log cannot be
// reached, Append retries until ctx ends, and then returns the entry of the last attempt with
// the error.
func (l *Log) Append(ctx context.Context, c audit.Change) (audit.Entry, error) {
	return l.write(ctx, c, time.Now(), nil)
}

// AppendLate is Append for a change that was made earlier. If the log already contains the
// entry tried then, it writes nothing and returns no entry.
func (l *Log) AppendLate(ctx context.Context, v Late) (audit.Entry, error) {
	c := audit.Change{Node: v.Node, Actor: v.Actor, Action: v.Action, Target: v.Target}
	if len(v.Detail) > 0 {
		c.Detail = v.Detail
	}
	return l.write(ctx, c, v.At, v.Tried)
}

func (l *Log) write(ctx context.Context, c audit.Change, at time.Time, tried *audit.Entry) (audit.Entry, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return audit.Entry{}, fmt.Errorf("audit %s: %w", c.Action, ctx.Err())
	}
	var e audit.Entry // of the last attempt
	for seen := (bucket.Contest{Most: maxTries}); ; {
		err := seen.Next(ctx, l.seq)
		if err != nil {
			return e, fmt.Errorf("audit %s: %w", c.Action, err)
		}
		if tried != nil {
			if there, err := l.has(ctx, *tried); there || err != nil {
				return audit.Entry{}, err
			}
		}
		if e, err = audit.Next(l.seq, l.head, at, c); err != nil {
			return audit.Entry{}, err
		}
		err = l.append(ctx, e)
		if !errors.Is(err, bucket.ErrConflict) {
			return e, err
		}
		if err := l.refresh(ctx); err != nil {
			return e, err
		}
	}
}

// has reports whether the chain contains an entry.
func (l *Log) has(ctx context.Context, e audit.Entry) (bool, error) {
	there, err := l.get(ctx, e.Seq)
	if errors.Is(err, bucket.ErrNotFound) {
		return false, nil
	}
	return err == nil && there.Hash == e.Hash, err
}

// append writes an entry, or returns ErrConflict if it does not follow the newest one. The
// caller has the turn.
func (l *Log) append(ctx context.Context, e audit.Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit %s: %w", e.Action, err)
	}
	start := time.Now()
	stored, tries, err := bucket.Again(ctx, func(ctx context.Context) (uint64, error) {
		if err := l.stream.Ready(ctx); err != nil {
			return 0, err
		}
		ack, err := l.js.Publish(ctx, subject, text, jetstream.WithExpectLastSequence(e.Seq-1), jetstream.WithMsgID(e.Hash))
		if err != nil {
			return 0, err
		}
		return ack.Sequence, nil
	})
	var api *jetstream.APIError
	conflict := errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
	if conflict && tries > 1 { // possibly with an earlier attempt whose answer was lost
		there, getErr := l.has(ctx, e)
		if getErr != nil {
			err, conflict = getErr, false
		} else if there {
			stored, err, conflict = e.Seq, nil, false
		}
	}
	l.took.Add(start, err)
	if conflict {
		return bucket.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("audit %s: %w", e.Action, err)
	}
	if stored != e.Seq {
		return fmt.Errorf("audit %s: entry %d was stored as %d", e.Action, e.Seq, stored)
	}
	l.seq, l.head = e.Seq, e.Hash
	return nil
}

// refresh reads the newest entry. The caller has the turn.
func (l *Log) refresh(ctx context.Context) error {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	if info.State.LastSeq == 0 {
		l.seq, l.head = 0, audit.Root
		return nil
	}
	e, err := l.get(ctx, info.State.LastSeq)
	if err != nil {
		return err
	}
	l.seq, l.head = info.State.LastSeq, e.Hash
	return nil
}

func (l *Log) get(ctx context.Context, seq uint64) (audit.Entry, error) {
	msg, err := l.stream.GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return audit.Entry{}, &damage{seq, bucket.ErrNotFound}
	}
	if err != nil {
		return audit.Entry{}, fmt.Errorf("read audit entry %d: %w", seq, err)
	}
	e, err := audit.ParseEntry(msg.Data)
	if err != nil {
		return e, &damage{seq, err}
	}
	return e, nil
}

// damage is the error for an entry that is missing or invalid according to the log itself.
// Other errors of get say nothing about the entry.
type damage struct {
	seq uint64
	err error
}

func (d *damage) Error() string { return fmt.Sprintf("audit entry %d: %v", d.seq, d.err) }
func (d *damage) Unwrap() error { return d.err }

func isDamage(err error) bool {
	var d *damage
	return errors.As(err, &d)
}

// Last returns the number of the newest entry, or 0 if there is none.
func (l *Log) Last(ctx context.Context) (uint64, error) {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the audit log: %w", err)
	}
	return info.State.LastSeq, nil
}

// Newest calls f with the entries before a number (0: all), newest first, until f returns
// false. It skips damaged entries.
func (l *Log) Newest(ctx context.Context, before uint64, f func(audit.Entry) bool) error {
	last, err := l.Last(ctx)
	if err != nil {
		return err
	}
	if before == 0 || before > last {
		before = last + 1
	}
	for seq := before - 1; seq >= 1; seq-- {
		e, err := l.get(ctx, seq)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case err == nil && !f(e):
			return nil
		case err != nil && !isDamage(err):
			return err
		}
	}
	return nil
}

// Each calls f with every entry, oldest first; a damaged one is passed as an error. It stops
// at f's first error, or when the log does not answer.
func (l *Log) Each(ctx context.Context, f func(seq uint64, e audit.Entry, fault error) error) error {
	last, err := l.Last(ctx)
	if err != nil {
		return err
	}
	for seq := uint64(1); seq <= last; seq++ {
		e, fault := l.get(ctx, seq)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if fault != nil && !isDamage(fault) {
			return fault
		}
		if err := f(seq, e, fault); err != nil {
			return err
		}
	}
	return nil
}

// Verify checks the whole chain.
func (l *Log) Verify(ctx context.Context, wanted string) (audit.Result, error) {
	v := audit.Verifier{Wanted: wanted}
	err := l.Each(ctx, func(seq uint64, e audit.Entry, fault error) error {
		if fault != nil {
			v.Break(seq, fault.Error())
			return nil
		}
		v.Add(e)
		return nil
	})
	return v.Result(), err
}

// Restore writes the entries of a backup into an empty chain, or continues after those that an
// earlier attempt has written.
func (l *Log) Restore(ctx context.Context, list []audit.Entry) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if err := l.refresh(ctx); err != nil {
		return err
	}
	for _, e := range list {
		if e.Seq <= l.seq {
			switch there, err := l.has(ctx, e); {
			case err != nil:
				return err
			case !there:
				return fmt.Errorf("audit entry %d is another than the backup's", e.Seq)
			}
			continue
		}
		if err := l.append(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
