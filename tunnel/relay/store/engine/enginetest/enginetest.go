// Package enginetest provides engines that misbehave, to test code that uses an engine.
package enginetest

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/engine"
)

// Later is an engine that does not answer for its streams while it is away.
type Later struct {
	*engine.Engine
	Away bool
}

// Stream returns a stream that already exists.
func (e *Later) Stream(_ context.Context, name, _ string, _ func(context.Context, jetstream.JetStream, int) (jetstream.Stream, error)) (*engine.Stream, error) {
	return engine.NewStream(func(ctx context.Context) (jetstream.Stream, error) {
		if e.Away {
			return nil, nats.ErrNoResponders
		}
		return e.JetStream().Stream(ctx, name)
	}), nil
}

// Thrice is an engine that would keep each stream three times. It creates none, but records
// the number of replicas requested for each name.
type Thrice map[string]int

// JetStream returns the interface for requests to the engine.
func (e Thrice) JetStream() jetstream.JetStream { return noting{of: e} }

// Stream calls make with three replicas.
func (e Thrice) Stream(ctx context.Context, _, _ string, make func(context.Context, jetstream.JetStream, int) (jetstream.Stream, error)) (*engine.Stream, error) {
	_, err := make(ctx, e.JetStream(), 3)
	return nil, err
}

type noting struct {
	jetstream.JetStream
	of map[string]int
}

func (n noting) CreateOrUpdateStream(_ context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	n.of[cfg.Name] = cfg.Replicas
	return nil, nil
}
