package engine

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
)

// lackError is something that the relay needs and a cluster lacks, described for the operator.
type lackError struct {
	text string
	err  error
}

func (e *lackError) Error() string { return e.text }
func (e *lackError) Unwrap() error { return e.err }

// deniedError is a lackError about permissions: trying again does not help.
type deniedError struct{ lackError }

// Final tells package bucket that trying again does not help.
func (e *deniedError) Final() {}

// lacking returns what the cluster lacks, according to a request's error, or nil.
func (e *Engine) lacking(err error) error {
	if err == nil || e.server != nil {
		return nil
	}
	if denied := e.denied.Load(); denied != nil && bucket.IsAway(err) {
		return &deniedError{lackError{fmt.Sprintf("NATS does not let the relay's user do what it needs (%v); give it all rights in an account of its own", *denied), err}}
	}
	var answer *jetstream.APIError
	switch {
	case errors.As(err, &answer) && (answer.ErrorCode == jetstream.JSErrCodeJetStreamNotEnabledForAccount || answer.ErrorCode == jetstream.JSErrCodeJetStreamNotEnabled):
		return &lackError{"the relay's account at NATS has no JetStream; turn it on there", err}
	case errors.Is(err, nats.ErrNoResponders):
		return &lackError{"NATS at " + redacted(e.cfg.URLs) + " has no JetStream, or no server that has it can be reached; start a server with a jetstream block in its configuration", err}
	}
	return nil
}
