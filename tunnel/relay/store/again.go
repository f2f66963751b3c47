package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// tryTime and retryFor bound a write while the cluster has no leader. A try
	// takes twice as long as the one before: a cluster that is slow answers, too.
	tryTime    = 2 * time.Second
	openTry    = 2 * time.Second
	openMost   = 20 * time.Second
	electing   = 10 * time.Second // what servers have found a leader within, mostly
	retryPause = 200 * time.Millisecond
	retryFor   = 12 * time.Second
	// codeNoPeers is what JetStream answers when too few servers can keep a stream.
	// Its description has the reasons why others cannot; none for a server that the
	// one who answers does not know of.
	codeNoPeers jetstream.ErrorCode = 10005
	// codeUnavailable is what a server answers that has no leader to ask.
	codeUnavailable = 503
)

// patiently calls open until it does not fail any more or ctx ends. A cluster
// that has no leader takes requests that it never answers: while it may be looking
// for one, a try is short. Then each takes twice as long as the one before, since the
// cluster may be slow.
func patiently(ctx context.Context, open func(context.Context) error) error {
	wait, begun := openTry, time.Now()
	for {
		try, done := context.WithTimeout(ctx, wait)
		err := open(try)
		done()
		if err == nil || ctx.Err() != nil || refusedForGood(err) {
			return err
		}
		if !rested(ctx) {
			return err
		}
		if time.Since(begun) > electing {
			wait = min(2*wait, openMost)
		}
	}
}

// rested waits before the next try, and reports whether ctx still lasts.
func rested(ctx context.Context) bool {
	pause := time.NewTimer(retryPause)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refusedForGood reports whether the cluster answered that it will not do it. That
// it has too few servers is no such answer, whether it knows of those that are
// not there or has not heard of them yet: they may be starting, as the relay is.
func refusedForGood(err error) bool {
	var full *folderError
	if errors.As(err, &full) {
		return true
	}
	var answer *jetstream.APIError
	if !errors.As(err, &answer) || answer.Code >= 500 {
		return false
	}
	if answer.ErrorCode != codeNoPeers {
		return true
	}
	says := func(reason string) bool { return strings.Contains(answer.Description, reason) }
	return !says("peer offline") && !says("miscellaneous issue") && (says("storage") || says("tag"))
}

// again does a write, and once more while the cluster has nobody to answer: it
// takes some seconds to find a new leader. It returns how often it tried.
func again(ctx context.Context, write func(context.Context) (uint64, error)) (rev uint64, tries int, err error) {
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()
	for tries = 1; ; tries++ {
		try, done := context.WithTimeout(ctx, tryTime<<min(tries-1, 2))
		rev, err = write(try)
		done()
		if !isAway(err) || ctx.Err() != nil || !rested(ctx) {
			return rev, tries, err
		}
	}
}

// IsAway reports whether an error says that the store did not answer in time.
// Whether a write was made is then not known.
func IsAway(err error) bool { return isAway(err) }

// isAway reports whether an error says that the cluster has nobody to answer now.
func isAway(err error) bool {
	var answer *jetstream.APIError
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, errUnsettled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrConnectionReconnecting) || errors.Is(err, nats.ErrReconnectBufExceeded) ||
		errors.As(err, &answer) && answer.Code == codeUnavailable
}

// readAgain reads a key's value, and once more while the cluster has nobody to
// answer.
func readAgain(ctx context.Context, kv jetstream.KeyValue, key string) (e jetstream.KeyValueEntry, err error) {
	_, _, err = again(ctx, func(ctx context.Context) (uint64, error) {
		e, err = kv.Get(ctx, key)
		return 0, err
	})
	return e, err
}

// listKeys returns the keys of a bucket that match a filter, of which > is all.
// What a listing brought before it was cut short is not all: it begins anew.
func listKeys(ctx context.Context, kv jetstream.KeyValue, filter string) (keys []string, err error) {
	_, _, err = again(ctx, func(ctx context.Context) (uint64, error) {
		lister, err := kv.ListKeysFiltered(ctx, filter)
		if err != nil {
			return 0, err
		}
		defer func() { _ = lister.Stop() }() // it ends with ctx, too
		keys = nil
		for key := range lister.Keys() {
			keys = append(keys, key)
		}
		return 0, ctx.Err()
	})
	return keys, err
}
