package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	recoveries       = 8
	recoveriesOnPath = 2
	// lived is how long a session has been there before its relay is killed: one
	// that ends sooner is taken for a relay that does not want it.
	lived = 10500 * time.Millisecond
	// awayStep is how much longer the relay stays away each time.
	awayStep = 430 * time.Millisecond
)

// measureRecovery kills the relay again and again, and tells how long after its
// return the agent is connected.
func measureRecovery(ctx context.Context, t *table, column string, lab *lab, n int, o options) error {
	if !o.wants("relay's return") {
		return nil
	}
	var took []time.Duration
	for i := range n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lived):
		}
		one, err := lab.recovery(ctx, time.Duration(i)*awayStep)
		if err != nil {
			return err
		}
		took = append(took, one)
	}
	slices.Sort(took)
	t.add("connected after the relay's return, median", "ms", column, float64(took[len(took)/2].Milliseconds()))
	t.add("connected after the relay's return, longest", "ms", column, float64(took[len(took)-1].Milliseconds()))
	return nil
}

// recovery kills the relay, lets it be away for so long after the agent has
// noticed, starts it again and returns how long after its return the agent is
// connected.
func (l *lab) recovery(ctx context.Context, away time.Duration) (time.Duration, error) {
	l.relay.end()
	if err := poll(ctx, func() error {
		var status struct{ Connected bool }
		if err := l.call("GET", "/api/v1/status", nil, &status); err != nil {
			return err
		}
		if status.Connected {
			return errors.New("still connected")
		}
		return nil
	}); err != nil {
		return 0, err
	}
	time.Sleep(away)
	if err := l.startRelay(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := l.awaitConnected(ctx, l.local)
	return time.Since(begin), err
}
