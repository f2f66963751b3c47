package operator

import (
	"net/http"
	"strconv"
	"time"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/store/table"
)

// timeTag identifies a version of something by when it changed.
func timeTag(changed time.Time) string { return strconv.FormatInt(changed.UnixNano(), 36) }

// expecting returns a check that refuses a change, with the message, unless it replaces
// the expected version. It returns nil if e is nil.
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
