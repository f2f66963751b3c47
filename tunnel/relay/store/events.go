package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/wire"
)

const (
	eventsStream  = "adit_access"
	eventsSubject = "adit.access"
	// MaxBatch is how many access events one stored message holds at most: a
	// write that waits for the disk is dear, so events go in batches.
	MaxBatch = 512
)

// Events are the access events that are kept, oldest first.
type Events struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	took   *meter
}

func openEvents(ctx context.Context, js jetstream.JetStream, cfg Config, took *meter) (*Events, error) {
	age, size := cfg.EventsAge, cfg.EventsBytes
	if age == 0 {
		age = 14 * 24 * time.Hour
	}
	if size == 0 {
		size = 1 << 30
	}
	stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: eventsStream, Subjects: []string{eventsSubject}, Storage: jetstream.FileStorage,
		MaxAge: age, MaxBytes: size, Discard: jetstream.DiscardOld, Replicas: max(cfg.Replicas, 1),
		Compression: jetstream.S2Compression, AllowDirect: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open store of access events: %w", err)
	}
	return &Events{js: js, stream: stream, took: took}, nil
}

// Append stores a batch of at most MaxBatch events.
func (e *Events) Append(ctx context.Context, batch []wire.Access) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	for i := range batch {
		if err := enc.Encode(&batch[i]); err != nil {
			return fmt.Errorf("store access events: %w", err)
		}
	}
	start := time.Now()
	_, err := e.js.Publish(ctx, eventsSubject, buf.Bytes())
	e.took.add(start, err)
	if err != nil {
		return fmt.Errorf("store access events: %w", err)
	}
	return nil
}

// Latest returns the newest events, oldest first, about count of them.
func (e *Events) Latest(ctx context.Context, count int) ([]wire.Access, error) {
	info, err := e.stream.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("read access events: %w", err)
	}
	var batches [][]wire.Access
	have := 0
	for seq := info.State.LastSeq; seq >= max(info.State.FirstSeq, 1) && have < count; seq-- {
		msg, err := e.stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read access events: %w", err)
		}
		var batch []wire.Access
		dec := json.NewDecoder(bytes.NewReader(msg.Data))
		for dec.More() && len(batch) < MaxBatch {
			var a wire.Access
			if err := dec.Decode(&a); err != nil {
				return nil, fmt.Errorf("read access events: batch %d: %w", seq, err)
			}
			batch = append(batch, a)
		}
		batches = append(batches, batch)
		have += len(batch)
	}
	all := make([]wire.Access, 0, have)
	for i := len(batches) - 1; i >= 0; i-- {
		all = append(all, batches[i]...)
	}
	return all, nil
}
