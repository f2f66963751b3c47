package console

import (
	"fmt"
	"time"
)

// when is a time as pages show it.
func when(t any) string {
	switch t := t.(type) {
	case time.Time:
		return t.UTC().Format("2006-01-02 15:04:05 UTC")
	case *time.Time:
		return t.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	return ""
}

// size is a number of bytes as people read it.
func size(n any) string {
	var v float64
	switch n := n.(type) {
	case int64:
		v = float64(n)
	case uint64:
		v = float64(n)
	}
	if v < 1000 {
		return fmt.Sprintf("%.0f B", v)
	}
	unit := 0
	units := [...]string{"kB", "MB", "GB", "TB", "PB"}
	for v /= 1000; v >= 999.5 && unit < len(units)-1; v /= 1000 {
		unit++
	}
	if v < 10 {
		return fmt.Sprintf("%.1f %s", v, units[unit])
	}
	return fmt.Sprintf("%.0f %s", v, units[unit])
}

// took is a duration with as many digits as matter.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// tone is how a status looks.
func tone(status int) string {
	switch {
	case status >= 500:
		return "bad"
	case status >= 400:
		return "warn"
	case status >= 200 && status < 300:
		return "ok"
	}
	return ""
}
