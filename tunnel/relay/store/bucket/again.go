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
	// tryTime and retryFor limit a write while the cluster has no leader. Each attempt may
	// take twice as long as the one before, so that a slow cluster can answer, too.
	tryTime    = 2 * time.Second
	openTry    = 2 * time.Second
	openMost   = 20 * time.Second
	electing   = 10 * time.Second // servers usually elect a leader within this time
	retryPause = 200 * time.Millisecond
	retryFor   = 12 * time.Second
	// codeNoPeers is JetStream's error when too few servers can keep a stream. The description
	// gives the reasons of the other servers, except for servers that the answering one does
	// not know.
	codeNoPeers jetstream.ErrorCode = 10005
	// JetStream's errors when a server, an account or a stream is full.
	codeServerFull  jetstream.ErrorCode = 10023
	codeNoStorage   jetstream.ErrorCode = 10047
	codeAccountFull jetstream.ErrorCode = 10002
	codeStoreFailed jetstream.ErrorCode = 10077 // if its description says that a maximum has been reached
	// codeUnavailable is the answer of a server that knows no leader to ask.
	codeUnavailable = 503
)

// Patiently calls open until it succeeds, is refused or ctx ends. A cluster without a leader
// accepts requests that it never answers. Attempts are short while an election may be in
// progress; after that each takes twice as long as the one before, because the cluster may be
// slow.
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

// Rested pauses before the next attempt, and reports whether ctx is still alive.
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

// IsRefusal reports whether the cluster answered that it will not do something, or an error
// has a method Final. An answer that there are too few servers does not count, unless they are
// the wrong ones: servers that are offline or not yet known may still be starting, just as the
// relay is.
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

// lacks reports whether no server can keep a stream for the given reason, rather than because
// a server is not there yet.
func lacks(answer *jetstream.APIError, reason string) bool {
	says := func(reason string) bool { return strings.Contains(answer.Description, reason) }
	return answer.ErrorCode == codeNoPeers && says(reason) && !says("peer offline") && !says("miscellaneous issue")
}

// Again makes a write, and repeats it while the cluster cannot answer, because electing a new
// leader takes some seconds. It returns the number of attempts.
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

// IsAway reports whether an error means that the cluster could not answer, or not in time. A
// write may then have been made or not.
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

// IsFull reports whether the cluster answered that it has no room for a write. If there was
// only one attempt, the write was not made.
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

// IsUnmade reports whether the cluster did not create a stream because it cannot reserve as
// much space as the stream may use. There may still be room to write to other streams.
func IsUnmade(err error) bool {
	var answer *jetstream.APIError
	return errors.As(err, &answer) && (answer.ErrorCode == codeNoStorage || lacks(answer, "storage"))
}
