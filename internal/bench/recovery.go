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
	returnsAtOnce    = 5
	// lived is how long a session has been there before its relay is killed: one
	// that ends sooner is taken for a relay that does not want it.
	lived = 10500 * time.Millisecond
	// awayStep is how much longer the relay stays away each time.
	awayStep = 430 * time.Millisecond
)

// measureRecovery kills the relay again and again, and tells how long after its
// return the agent is connected; and where the relay is back at once, before its idle
// agent can have missed it, how long after that its visitors are answered.
func measureRecovery(ctx context.Context, t *table, column string, f face, lab *lab, n int, o options) error {
	if !o.wants("relay's return") {
		return nil
	}
	err := measureReturns(ctx, t, "connected after the relay's return", column, n, func(i int) (time.Duration, error) {
		return lab.recovery(ctx, time.Duration(i)*awayStep)
	})
	if err != nil {
		return err
	}
	return measureReturns(ctx, t, "served after the relay's return at once", column, min(n, returnsAtOnce), func(int) (time.Duration, error) {
		return lab.returnAtOnce(ctx, f)
	})
}

// measureReturns adds median and longest of n returns, each of a session that has been
// idle for a while.
func measureReturns(ctx context.Context, t *table, name, column string, n int, one func(i int) (time.Duration, error)) error {
	var took []time.Duration
	for i := range n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lived):
		}
		d, err := one(i)
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	t.add(name+", median", "ms", column, float64(took[len(took)/2].Milliseconds()))
	t.add(name+", longest", "ms", column, float64(took[len(took)-1].Milliseconds()))
	return nil
}

// returnAtOnce kills the relay, starts it again and returns how long after its return
// a visitor is answered.
func (l *lab) returnAtOnce(ctx context.Context, f face) (time.Duration, error) {
	l.relay.end()
	if err := l.startRelay(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := poll(ctx, func() error {
		v, err := dialVisitor(ctx, f.http, requestFor("/small", f.host, true))
		if err != nil {
			return err
		}
		defer v.conn.Close()
		return v.ask()
	})
	return time.Since(begin), err
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
