package bucket

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
	// What JetStream answers when a server, an account or a stream may keep no more.
	codeServerFull  jetstream.ErrorCode = 10023
	codeNoStorage   jetstream.ErrorCode = 10047
	codeAccountFull jetstream.ErrorCode = 10002
	codeStoreFailed jetstream.ErrorCode = 10077 // where its description says that a maximum is reached
	// codeUnavailable is what a server answers that has no leader to ask.
	codeUnavailable = 503
)

// Patiently calls open until it does not fail any more or ctx ends. A cluster
// that has no leader takes requests that it never answers: while it may be looking
// for one, a try is short. Then each takes twice as long as the one before, since the
// cluster may be slow.
func Patiently(ctx context.Context, open func(context.Context) error) error {
	wait, begun := openTry, time.Now()
	for {
		try, done := context.WithTimeout(ctx, wait)
		err := open(try)
		done()
		if err == nil || ctx.Err() != nil || IsRefusal(err) {
			return err
		}
		if !Rested(ctx) {
			return err
		}
		if time.Since(begun) > electing {
			wait = min(2*wait, openMost)
		}
	}
}

// Rested waits before the next try, and reports whether ctx still lasts.
func Rested(ctx context.Context) bool {
	pause := time.NewTimer(retryPause)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// IsRefusal reports whether the cluster answered that it will not do it, or an error
// has a method Final. That it has too few servers is no such answer, whether it knows
// of those that are not there or has not heard of them yet: they may be starting, as
// the relay is.
func IsRefusal(err error) bool {
	var end interface {
		error
		Final()
	}
	if errors.As(err, &end) || IsFull(err) {
		return true
	}
	var answer *jetstream.APIError
	if !errors.As(err, &answer) || answer.Code >= 500 {
		return false
	}
	return answer.ErrorCode != codeNoPeers || lacks(answer, "tag")
}

// lacks reports whether no server can keep a stream, for a reason that is not that one
// is not there yet.
func lacks(answer *jetstream.APIError, reason string) bool {
	says := func(reason string) bool { return strings.Contains(answer.Description, reason) }
	return answer.ErrorCode == codeNoPeers && says(reason) && !says("peer offline") && !says("miscellaneous issue")
}

// Again does a write, and once more while the cluster has nobody to answer: it
// takes some seconds to find a new leader. It returns how often it tried.
func Again(ctx context.Context, write func(context.Context) (uint64, error)) (rev uint64, tries int, err error) {
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()
	for tries = 1; ; tries++ {
		try, done := context.WithTimeout(ctx, tryTime<<min(tries-1, 2))
		rev, err = write(try)
		done()
		if !IsAway(err) || ctx.Err() != nil || !Rested(ctx) {
			return rev, tries, err
		}
	}
}

// IsAway reports whether an error says that the cluster has nobody to answer now, or
// did not in time. Whether a write was made is then not known.
func IsAway(err error) bool {
	if IsFull(err) {
		return false
	}
	var answer *jetstream.APIError
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrTimeout) || errors.Is(err, errUnsettled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrConnectionReconnecting) || errors.Is(err, nats.ErrReconnectBufExceeded) ||
		errors.As(err, &answer) && answer.Code == codeUnavailable
}

// IsFull reports whether the cluster answered that it has no room for a write: one that
// was tried once was not made.
func IsFull(err error) bool {
	var answer *jetstream.APIError
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.ErrorCode {
	case codeServerFull, codeAccountFull:
		return true
	case codeStoreFailed:
		return strings.Contains(answer.Description, "maximum")
	}
	return IsUnmade(err)
}

// IsUnmade reports whether the cluster answered that it cannot keep as much room free as a
// stream may have, and so does not make it: there may be room for what is written to others.
func IsUnmade(err error) bool {
	var answer *jetstream.APIError
	return errors.As(err, &answer) && (answer.ErrorCode == codeNoStorage || lacks(answer, "storage"))
}
