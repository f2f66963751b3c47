// Package events keeps a relay's access events in a stream, in batches, limited by age and
// size. It stores events, walks over them newest first, and follows those that any node
// stores. Package wire defines the events; callers decide what to search for.
package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/engine"
	"adit/tunnel/wire"
)

const (
	streamName = "adit_access"
	subject    = "adit.access"
	// clockSlack is how far the nodes' clocks may differ.
	clockSlack = time.Minute
	followWait = 10 * time.Second
	maxWaiting = 256 // batches that a follower has not yet read
)

// Log is the stored access events.
type Log struct {
	js     jetstream.JetStream
	stream *engine.Stream
	took   *bucket.Meter
	log    *slog.Logger
	spoilt spoilt
}

// spoilt remembers the batches that could not be decoded, so that each is logged only once.
type spoilt struct {
	mu   sync.Mutex
	told map[uint64]bool
}

const maxSpoilt = 1000 // batches remembered

// leaveOut records a batch that a search has skipped.
func (l *Log) leaveOut(seq uint64, err error) {
	l.spoilt.mu.Lock()
	told := l.spoilt.told[seq]
	if l.spoilt.told == nil || len(l.spoilt.told) >= maxSpoilt {
		l.spoilt.told = make(map[uint64]bool)
	}
	l.spoilt.told[seq] = true
	l.spoilt.mu.Unlock()
	if !told {
		l.log.Warn("access events that cannot be read are left out", "batch", seq, "error", err)
	}
}

// Engine is what events are stored in.
type Engine interface {
	Stream(ctx context.Context, name, part string, make func(ctx context.Context, js jetstream.JetStream, copies int) (jetstream.Stream, error)) (*engine.Stream, error)
	JetStream() jetstream.JetStream
}

// Config limits what is kept.
type Config struct {
	Age   time.Duration // if zero, 14 days
	Bytes int64         // if zero, 1 GiB
	Took  *bucket.Meter // measures writes
	Log   *slog.Logger
}

// Open opens the log, creating it if necessary.
func Open(ctx context.Context, e Engine, cfg Config) (*Log, error) {
	l := &Log{js: e.JetStream(), took: cfg.Took, log: cfg.Log}
	var err error
	most := cmp.Or(cfg.Bytes, 1<<30)
	l.stream, err = e.Stream(ctx, streamName, "access events", func(ctx context.Context, js jetstream.JetStream, copies int) (jetstream.Stream, error) {
		stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: streamName, Subjects: []string{subject}, Storage: jetstream.FileStorage,
			MaxAge: cmp.Or(cfg.Age, 14*24*time.Hour), MaxBytes: most, Discard: jetstream.DiscardOld, Replicas: copies,
			AllowDirect: true,
		})
		if bucket.IsUnmade(err) {
			return nil, fmt.Errorf("open store of access events, which limits.access_bytes lets have %d bytes: %w", most, err)
		}
		if err != nil {
			return nil, fmt.Errorf("open store of access events: %w", err)
		}
		return stream, nil
	})
	return l, err
}

// Append stores a batch of at most MaxBatch events.
func (l *Log) Append(ctx context.Context, batch []wire.Access) error {
	if len(batch) == 0 {
		return nil
	}
	msg, err := encodeBatch(batch)
	if err != nil {
		return fmt.Errorf("store access events: %w", err)
	}
	start := time.Now()
	if err = l.stream.Ready(ctx); err == nil {
		_, err = l.js.PublishMsg(ctx, msg)
	}
	l.took.Add(start, err)
	if err != nil {
		return fmt.Errorf("store access events: %w", err)
	}
	return nil
}

// Cursor is a position among the events: all older events come after it. The zero value is the
// position before the newest event.
type Cursor struct {
	Seq   uint64 // of the batch
	Index int    // of the event that came last; the lower ones follow
}

// String returns the cursor as text.
func (c Cursor) String() string {
	if c.Seq == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d", c.Seq, c.Index)
}

// ParseCursor parses what String returns.
func ParseCursor(text string) (c Cursor, ok bool) {
	if text == "" {
		return c, true
	}
	seq, index, found := strings.Cut(text, "-")
	var err1, err2 error
	c.Seq, err1 = strconv.ParseUint(seq, 10, 63)
	c.Index, err2 = strconv.Atoi(index)
	if !found || err1 != nil || err2 != nil || c.Seq == 0 || c.Index < 0 || c.Index > MaxBatch {
		return Cursor{}, false
	}
	return c, true
}

// Scan describes a walk over the events, newest first.
type Scan struct {
	From         Cursor
	Since, Until time.Time // zero: no limit
	Batches      int       // most batches to read; 0: no limit
	Stop         time.Time // when to stop; zero: no limit
}

// Walk calls f with each event of a scan until f returns false, and returns where to continue;
// done is true if nothing is left. It holds one batch in memory. Batches that cannot be
// decoded are skipped and logged.
func (l *Log) Walk(ctx context.Context, s Scan, f func(*wire.Access) bool) (next Cursor, done bool, err error) {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return s.From, false, fmt.Errorf("read access events: %w", err)
	}
	at := s.From
	if at.Seq == 0 || at.Seq > info.State.LastSeq {
		at = Cursor{info.State.LastSeq, MaxBatch}
	}
	hidden := uint64(math.MaxUint64) // batches before this one were already looked for
	for read := 0; at.Seq >= max(info.State.FirstSeq, 1); at = (Cursor{at.Seq - 1, MaxBatch}) {
		if s.Batches > 0 && read >= s.Batches || !s.Stop.IsZero() && time.Now().After(s.Stop) {
			return at, false, nil
		}
		read++
		msg, err := l.stream.GetMsg(ctx, at.Seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return at, false, fmt.Errorf("read access events: %w", err)
		}
		// An event's time is when it began, so it is always stored later than that.
		if old := s.Since.Add(-clockSlack); !s.Since.IsZero() && msg.Time.Before(old) {
			if at.Seq < hidden {
				hidden = behind(at.Seq, info.State.FirstSeq, func(seq uint64) bool {
					msg, err := l.stream.GetMsg(ctx, seq)
					return err == nil && !msg.Time.Before(old)
				})
			}
			if hidden == 0 {
				return Cursor{}, true, nil
			}
			continue
		}
		if outside(msg.Header, s.Since, s.Until) {
			continue
		}
		batch, err := decodeBatch(msg.Header, msg.Data)
		if err != nil {
			l.leaveOut(at.Seq, err)
			continue
		}
		for i := min(at.Index, len(batch)) - 1; i >= 0; i-- {
			a := &batch[i]
			if !s.Since.IsZero() && a.Time.Before(s.Since) || !s.Until.IsZero() && a.Time.After(s.Until) {
				continue
			}
			a.ID = Cursor{at.Seq, i}.String()
			if !f(a) {
				return Cursor{at.Seq, i}, i == 0 && at.Seq <= max(info.State.FirstSeq, 1), nil
			}
		}
	}
	return Cursor{}, true, nil
}

// behind looks for a recent batch before at, at distances that double, and returns its number,
// or 0 if there is none. While a clock was set to the past, batches were stored that look
// older than those before them, and a search must not stop at these.
func behind(at, first uint64, fresh func(seq uint64) bool) uint64 {
	first = max(first, 1)
	for step := uint64(1); at > first; step *= 2 {
		at -= min(step, at-first)
		if fresh(at) {
			return at
		}
	}
	return 0
}

// Follow calls f with each batch that any node stores from now on, until ctx ends. missed is
// how many batches were dropped since the previous call because f was too slow.
func (l *Log) Follow(ctx context.Context, f func(batch []wire.Access, missed int) error) error {
	waiting := make(chan *nats.Msg, maxWaiting)
	var missed atomic.Int64
	sub, err := l.js.Conn().Subscribe(subject, func(m *nats.Msg) {
		select {
		case waiting <- m:
		default:
			missed.Add(1)
		}
	})
	if err != nil {
		return fmt.Errorf("follow access events: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // it also ends with the connection
	short, cancel := context.WithTimeout(ctx, followWait)
	defer cancel()
	if err := l.js.Conn().FlushWithContext(short); err != nil {
		return fmt.Errorf("follow access events: %w", err)
	}
	if err := f(nil, 0); err != nil { // tells f that it is now following
		return err
	}
	for {
		select {
		case m := <-waiting:
			batch, err := decodeBatch(m.Header, m.Data)
			if err != nil {
				continue
			}
			if err := f(batch, int(missed.Swap(0))); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// Kept describes what is stored.
type Kept struct {
	Bytes  uint64
	Oldest time.Time // when the oldest batch was stored; zero: there is none
}

// Kept returns what is currently stored.
func (l *Log) Kept(ctx context.Context) (Kept, error) {
	info, err := l.stream.Info(ctx)
	if err != nil {
		return Kept{}, fmt.Errorf("read access events: %w", err)
	}
	return Kept{Bytes: info.State.Bytes, Oldest: info.State.FirstTime}, nil
}
