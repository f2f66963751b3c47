package store

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
	auditStream  = "adit_audit"
	auditSubject = "adit.audit"
	auditTries   = 100
)

// Audit is the chain of audit entries. It grows only: the stream refuses to
// delete, and an entry is taken only if its writer knew the one before it.
type Audit struct {
	js     jetstream.JetStream
	stream *engine.Stream
	took   *bucket.Meter

	turn chan struct{} // room for one: whoever has filled it may write. It guards:
	seq  uint64        // of the newest entry that is known here
	head string        // its hash
}

// makeAudit makes the stream of the audit log.
func makeAudit(ctx context.Context, js jetstream.JetStream, copies int) (jetstream.Stream, error) {
	stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: auditStream, Subjects: []string{auditSubject}, Storage: jetstream.FileStorage,
		Replicas: copies, DenyDelete: true, DenyPurge: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open store of the audit log: %w", err)
	}
	return stream, nil
}

// Late is a change that could not be written into the log when it was made. A
// relay keeps it as JSON until it can be.
type Late struct {
	At     time.Time       `json:"at"`
	Node   string          `json:"node,omitempty"`
	Actor  audit.Actor     `json:"actor"`
	Action string          `json:"action"`
	Target string          `json:"target,omitempty"`
	Detail json.RawMessage `json:"detail,omitempty"`
	// Tried is the entry of a write that had no answer: the log may have it.
	Tried *audit.Entry `json:"tried,omitempty"`
}

// Append writes a change as the next entry of the chain. Several nodes may do so
// at once: the one that was not first tries again behind the other's entry. While
// the log is away, Append tries until ctx ends; then it returns the entry of the
// last try with the error.
func (a *Audit) Append(ctx context.Context, c audit.Change) (audit.Entry, error) {
	return a.write(ctx, c, time.Now(), nil)
}

// AppendLate is Append for a change that was made earlier. It writes nothing, and
// returns no entry, if the log has what was tried then.
func (a *Audit) AppendLate(ctx context.Context, l Late) (audit.Entry, error) {
	c := audit.Change{Node: l.Node, Actor: l.Actor, Action: l.Action, Target: l.Target}
	if len(l.Detail) > 0 {
		c.Detail = l.Detail
	}
	return a.write(ctx, c, l.At, l.Tried)
}

func (a *Audit) write(ctx context.Context, c audit.Change, at time.Time, tried *audit.Entry) (audit.Entry, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return audit.Entry{}, fmt.Errorf("audit %s: %w", c.Action, ctx.Err())
	}
	var e audit.Entry // of the last try
	for seen := (bucket.Contest{Most: auditTries}); ; {
		err := seen.Next(ctx, a.seq)
		if err != nil {
			return e, fmt.Errorf("audit %s: %w", c.Action, err)
		}
		if tried != nil {
			if there, err := a.has(ctx, *tried); there || err != nil {
				return audit.Entry{}, err
			}
		}
		if e, err = audit.Next(a.seq, a.head, at, c); err != nil {
			return audit.Entry{}, err
		}
		err = a.append(ctx, e)
		if !errors.Is(err, bucket.ErrConflict) {
			return e, err
		}
		if err := a.refresh(ctx); err != nil {
			return e, err
		}
	}
}

// has reports whether an entry is in the chain.
func (a *Audit) has(ctx context.Context, e audit.Entry) (bool, error) {
	there, err := a.get(ctx, e.Seq)
	if errors.Is(err, bucket.ErrNotFound) {
		return false, nil
	}
	return err == nil && there.Hash == e.Hash, err
}

// append writes an entry, or returns ErrConflict if it does not follow the
// newest; the turn is the caller's.
func (a *Audit) append(ctx context.Context, e audit.Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("audit %s: %w", e.Action, err)
	}
	start := time.Now()
	stored, tries, err := bucket.Again(ctx, func(ctx context.Context) (uint64, error) {
		if err := a.stream.Ready(ctx); err != nil {
			return 0, err
		}
		ack, err := a.js.Publish(ctx, auditSubject, text, jetstream.WithExpectLastSequence(e.Seq-1), jetstream.WithMsgID(e.Hash))
		if err != nil {
			return 0, err
		}
		return ack.Sequence, nil
	})
	var api *jetstream.APIError
	conflict := errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
	if conflict && tries > 1 { // perhaps with the try whose answer was lost
		there, getErr := a.has(ctx, e)
		if getErr != nil {
			err, conflict = getErr, false
		} else if there {
			stored, err, conflict = e.Seq, nil, false
		}
	}
	a.took.Add(start, err)
	if conflict {
		return bucket.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("audit %s: %w", e.Action, err)
	}
	if stored != e.Seq {
		return fmt.Errorf("audit %s: entry %d was stored as %d", e.Action, e.Seq, stored)
	}
	a.seq, a.head = e.Seq, e.Hash
	return nil
}

// refresh reads the newest entry; the turn is the caller's.
func (a *Audit) refresh(ctx context.Context) error {
	info, err := a.stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	if info.State.LastSeq == 0 {
		a.seq, a.head = 0, audit.Root
		return nil
	}
	e, err := a.get(ctx, info.State.LastSeq)
	if err != nil {
		return err
	}
	a.seq, a.head = info.State.LastSeq, e.Hash
	return nil
}

func (a *Audit) get(ctx context.Context, seq uint64) (audit.Entry, error) {
	msg, err := a.stream.GetMsg(ctx, seq)
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

// damage is of an entry that the log answered for: it is not there, or is none.
// Other errors of get say nothing of the entry.
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

// Last is the number of the newest entry; 0: there is none.
func (a *Audit) Last(ctx context.Context) (uint64, error) {
	info, err := a.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the audit log: %w", err)
	}
	return info.State.LastSeq, nil
}

// Newest calls f with the entries before a number (0: all), newest first, until
// it returns false. Damaged entries are left out.
func (a *Audit) Newest(ctx context.Context, before uint64, f func(audit.Entry) bool) error {
	last, err := a.Last(ctx)
	if err != nil {
		return err
	}
	if before == 0 || before > last {
		before = last + 1
	}
	for seq := before - 1; seq >= 1; seq-- {
		e, err := a.get(ctx, seq)
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

// Each calls f with every entry, oldest first; a damaged one comes as an error. It
// ends at f's first error, or where the log does not answer.
func (a *Audit) Each(ctx context.Context, f func(seq uint64, e audit.Entry, fault error) error) error {
	last, err := a.Last(ctx)
	if err != nil {
		return err
	}
	for seq := uint64(1); seq <= last; seq++ {
		e, fault := a.get(ctx, seq)
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
func (a *Audit) Verify(ctx context.Context, wanted string) (audit.Result, error) {
	v := audit.Verifier{Wanted: wanted}
	err := a.Each(ctx, func(seq uint64, e audit.Entry, fault error) error {
		if fault != nil {
			v.Break(seq, fault.Error())
			return nil
		}
		v.Add(e)
		return nil
	})
	return v.Result(), err
}

// restore writes the entries of a backup into an empty chain, or behind those of
// them that a try before has written.
func (a *Audit) restore(ctx context.Context, list []audit.Entry) error {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	if err := a.refresh(ctx); err != nil {
		return err
	}
	for _, e := range list {
		if e.Seq <= a.seq {
			switch there, err := a.has(ctx, e); {
			case err != nil:
				return err
			case !there:
				return fmt.Errorf("audit entry %d is another than the backup's", e.Seq)
			}
			continue
		}
		if err := a.append(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
