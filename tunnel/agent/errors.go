package agent

import (
	"fmt"

	"adit/tunnel/agent/refusal"
)

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
