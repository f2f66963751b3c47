// Package localtime writes times for people, in the user's time zone.
package localtime

import (
	"strings"
	"time"
)

// Zone is where the person's clock is. It is a variable of its own, because others
// read time.Local in the background from the start of the program; tests set it.
var Zone = time.Local

// Text is a time to the second.
func Text(t time.Time) string { return t.In(Zone).Format("2006-01-02 15:04:05") }

// Minute is Text for lists of what is old.
func Minute(t time.Time) string { return t.In(Zone).Format("2006-01-02 15:04") }

// Clock is a time of today.
func Clock(t time.Time) string { return t.In(Zone).Format("15:04:05") }

// WithoutYear is what Text or Minute wrote without its year, which a list can do
// without. Another text stays as it is.
func WithoutYear(text string) string {
	_, rest, ok := strings.Cut(text, "-")
	if !ok {
		return text
	}
	return rest
}
