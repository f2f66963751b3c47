// Package span writes durations for people.
package span

import (
	"fmt"
	"time"
)

// Text returns d as a person would say it, in at most two units: 0.391 ms, 250 ms, 45 s, 90
// minutes, 24 hours, 25 hours 30 minutes, 90 days.
func Text(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	case d < time.Second-time.Millisecond/2:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < time.Minute-50*time.Millisecond:
		return fmt.Sprintf("%.3g s", d.Round(100*time.Millisecond).Seconds())
	case d.Round(time.Second) < time.Hour && d.Round(time.Second)%time.Minute != 0:
		d = d.Round(time.Second)
		return fmt.Sprintf("%s %d s", count(d/time.Minute, "minute"), d%time.Minute/time.Second)
	}
	d = d.Round(time.Minute)
	switch {
	case d < 2*time.Hour && d != time.Hour:
		return count(d/time.Minute, "minute")
	case d < 2*day:
		return pair(d/time.Hour, "hour", d%time.Hour/time.Minute, "minute")
	}
	d = d.Round(time.Hour)
	return pair(d/day, "day", d%day/time.Hour, "hour")
}

// pair is of two units; the lesser is left out where there is none of it.
func pair(n time.Duration, unit string, m time.Duration, lesser string) string {
	if m == 0 {
		return count(n, unit)
	}
	return count(n, unit) + " " + count(m, lesser)
}

func count(n time.Duration, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
