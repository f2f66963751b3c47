package agent

import (
	"cmp"
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

// noSession says why what needs a session is not done now.
func (a *Agent) noSession() *refusal.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.stateLocked() {
	case StateUnconfigured:
		return notConfigured()
	case StatePaused:
		return isPaused()
	case StateRejected:
		return a.rejectedLocked()
	}
	return &refusal.Error{Code: refusal.CodeRelayUnreachable, Message: "there is no session with the relay now; try again when it is connected"}
}

func isPaused() *refusal.Error {
	return &refusal.Error{Code: refusal.CodeRelayUnreachable, Message: "adit is paused; resume it first"}
}

// rejectedLocked says that the relay refuses the token, which trying again does not change.
func (a *Agent) rejectedLocked() *refusal.Error {
	return &refusal.Error{Code: refusal.CodeRelayRejected, Message: cmp.Or(a.standing.lastError, "the relay refused the token; configure another")}
}

func notConfigured() *refusal.Error {
	return &refusal.Error{Code: refusal.CodeNotConfigured, Message: "there is no auth token yet; configure one first"}
}
