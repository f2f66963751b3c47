package agent

import (
	"errors"
	"fmt"

	"adit/tunnel/agent/refusal"
)

// errWithheld is why a visitor of a udp tunnel has not got all answers.
var errWithheld = errors.New("an answer was not passed on: it is longer than a visitor may get whose address may be forged; the relay's operator can allow more by udp_amplification")

func notFound(id string) *refusal.Error {
	return &refusal.Error{Code: refusal.CodeNotFound, Message: fmt.Sprintf("there is no tunnel %q", refusal.Clip(id))}
}

func declaredError() *refusal.Error {
	return &refusal.Error{Code: refusal.CodeInvalidParameter, Message: "this tunnel is declared in adit.toml; change it there", Field: "id"}
}

func busy() *refusal.Error {
	return &refusal.Error{Code: refusal.CodeControlBusy, Message: "another change is being made; try again in a moment"}
}

func noSession() *refusal.Error {
	return &refusal.Error{Code: refusal.CodeRelayUnreachable, Message: "there is no session with the relay now; try again when it is connected"}
}

func notConfigured() *refusal.Error {
	return &refusal.Error{Code: refusal.CodeNotConfigured, Message: "there is no auth token yet; configure one first"}
}
