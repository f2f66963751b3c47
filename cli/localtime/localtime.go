// Package localtime writes times for people, in the user's time zone.
package localtime

import (
	"strings"
	"time"
)

// Zone is the user's time zone. It is a separate variable because others read time.Local in the
// background from the start of the program; tests set it.
var Zone = time.Local

// Text formats a time to the second.
func Text(t time.Time) string { return t.In(Zone).Format("2006-01-02 15:04:05") }

// Minute is like Text to the minute, for lists of old things.
func Minute(t time.Time) string { return t.In(Zone).Format("2006-01-02 15:04") }

// Clock formats a time of today.
func Clock(t time.Time) string { return t.In(Zone).Format("15:04:05") }

// WithoutYear removes the year, which a list can do without, from what Text or Minute wrote. Any
// other text is returned unchanged.
func WithoutYear(text string) string {
	_, rest, ok := strings.Cut(text, "-")
	if !ok {
		return text
	}
	return rest
}
