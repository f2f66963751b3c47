package localapi

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"strconv"
	"syscall"

	"adit/tunnel/agent/refusal"
)

// Codes of this package's own refusals; the agent has others.
const (
	codeInvalidJSON      = "invalid_json"
	codeInvalidParameter = "invalid_parameter"
	codeUnauthorized     = "unauthorized"
	codeForbiddenHost    = "forbidden_host"
	codeForbiddenOrigin  = "forbidden_origin"
	codeNotFound         = "not_found"
	codeMethodNotAllowed = "method_not_allowed"
	codePayloadTooLarge  = "payload_too_large"
	codeMediaType        = "unsupported_media_type"
	codeInternal         = "internal"
)

// retryAfter is the Retry-After of a 503, in seconds.
const retryAfter = 5

// problem is a refusal and its status.
type problem struct {
	status  int
	code    string
	message string
	field   string
}

func (p *problem) Error() string { return p.message }

func invalid(field, message string) error {
	return &problem{status: http.StatusBadRequest, code: codeInvalidParameter, message: message, field: field}
}

func notFound(what string) error {
	return &problem{status: http.StatusNotFound, code: codeNotFound, message: "there is no " + what}
}

// statusOf maps the agent's codes to statuses.
var statusOf = map[string]int{
	refusal.CodeInvalidParameter: http.StatusBadRequest,
	refusal.CodeInvalidToken:     http.StatusBadRequest,
	refusal.CodeRelayRejected:    http.StatusBadRequest,
	refusal.CodeNotConfigured:    http.StatusBadRequest,
	refusal.CodeNotFound:         http.StatusNotFound,
	refusal.CodeControlBusy:      http.StatusConflict,
	refusal.CodeChanged:          http.StatusPreconditionFailed,
	refusal.CodeRelayUnreachable: http.StatusServiceUnavailable,
	refusal.CodeTooManyStreams:   http.StatusServiceUnavailable,
}

// problemOf turns any error into what the caller sees. The details of internal errors are left out;
// they go to the log.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var refused *refusal.Error
	if errors.As(err, &refused) {
		if status, ok := statusOf[refused.Code]; ok {
			return &problem{status: status, code: refused.Code, message: refused.Message, field: refused.Field}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &problem{
			status: http.StatusServiceUnavailable, code: refusal.CodeRelayUnreachable,
			message: "the relay did not answer in time",
		}
	}
	message := "the daemon could not do it; its log says why"
	var disk *fs.PathError
	if errors.As(err, &disk) {
		// Only the operating system's message: the path does not concern a stranger.
		message = "the daemon could not save it: " + errnoOf(disk.Err) + "; fix that in its state folder and try again"
	}
	return &problem{status: http.StatusInternalServerError, code: codeInternal, message: message}
}

func errnoOf(err error) string {
	if no := syscall.Errno(0); errors.As(err, &no) {
		return no.Error()
	}
	return "its state folder cannot be written"
}

// refuse is the one place where an error becomes a response and a log line.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	level := slog.LevelDebug
	if p.status == http.StatusInternalServerError {
		level = slog.LevelError
	}
	if r.Context().Err() == nil { // whoever left is owed neither answer nor line
		s.log.LogAttrs(r.Context(), level, "request refused",
			slog.String("method", r.Method), slog.String("path", r.URL.Path),
			slog.Int("status", p.status), slog.String("code", p.code), slog.String("error", err.Error()))
	}
	h := w.Header()
	switch p.status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="adit"`)
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	type body struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Field   string `json:"field,omitempty"`
	}
	writeJSON(w, p.status, struct {
		Error body `json:"error"`
	}{body{p.code, p.message, p.field}})
}

// writeJSON writes v as it is. Write errors only concern the reader.
func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil { // only what the packages below us put into v can do this
		http.Error(w, `{"error":{"code":"internal","message":"the answer cannot be written as JSON"}}`, http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// writeData writes a successful result in its envelope.
func writeData(w http.ResponseWriter, status int, data any) error {
	writeJSON(w, status, struct {
		Data any `json:"data"`
	}{data})
	return nil
}

// writeItems writes a list in its envelope; an empty one is [], never null.
func writeItems[T any](w http.ResponseWriter, items []T) error {
	if items == nil {
		items = []T{}
	}
	return writeData(w, http.StatusOK, struct {
		Items []T `json:"items"`
	}{items})
}
