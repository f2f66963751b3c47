package operator

import (
	"net/http"
	"strconv"
	"time"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/store/table"
)

// timeTag tells what changed at a time from what was there before.
func timeTag(changed time.Time) string { return strconv.FormatInt(changed.UnixNano(), 36) }

// expecting is what a change that expects something has against anything else, in
// the words of the message. Nil expects nothing.
func expecting[T any](e console.Expected, tagOf func(T) string, message string, args ...any) table.Against[T] {
	if e == nil {
		return nil
	}
	return func(v T, exists bool) error {
		tag := ""
		if exists {
			tag = tagOf(v)
		}
		if e(tag) {
			return nil
		}
		return bad(http.StatusPreconditionFailed, "precondition_failed", "", message, args...)
	}
}
