// Package refusal defines the errors with which the agent refuses a request: a code for programs, a
// sentence for people, and the field at fault. Any other error is the agent's own fault. How a code
// maps to HTTP is left to package localapi.
package refusal

import (
	"fmt"
	"strings"
)

// Codes of an Error.
const (
	CodeInvalidParameter = "invalid_parameter"
	CodeInvalidToken     = "invalid_token"
	CodeRelayRejected    = "relay_rejected"
	CodeNotConfigured    = "not_configured"
	CodeNotFound         = "not_found"
	CodeControlBusy      = "control_busy"
	CodeRelayUnreachable = "relay_unreachable"
	CodeChanged          = "precondition_failed" // what was to be replaced is another now
	CodeTooManyStreams   = "too_many_streams"
)

// Error is the error of a refused operation; any other error is the agent's own fault.
type Error struct {
	Code    string
	Message string
	Field   string // the field at fault, if one is
}

func (e *Error) Error() string { return e.Message }

// Invalid refuses the value of a field.
func Invalid(field, format string, args ...any) *Error {
	return &Error{Code: CodeInvalidParameter, Message: field + ": " + fmt.Sprintf(format, args...), Field: field}
}

// Clip shortens a value that is quoted back to its sender.
func Clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "…"
	}
	return s
}
