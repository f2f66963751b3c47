package relay

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseSize parses a number of bytes: 1500, 10kB, 1.5GB, 4MiB.
func parseSize(text string) (int64, error) {
	number := strings.TrimRight(strings.TrimSpace(text), "BbKkMmGgTtIi ")
	unit := strings.ToUpper(strings.TrimSpace(strings.TrimSpace(text)[len(number):]))
	units := map[string]float64{"": 1, "B": 1}
	for i, letter := range []string{"K", "M", "G", "T"} {
		decimal, binary := 1.0, 1.0
		for range i + 1 {
			decimal *= 1000
			binary *= 1024
		}
		units[letter], units[letter+"B"], units[letter+"IB"] = decimal, decimal, binary
	}
	v, err := strconv.ParseFloat(number, 64)
	factor, ok := units[unit]
	if err != nil || !ok || math.IsNaN(v) || v < 0 || v*factor > 1<<62 {
		return 0, fmt.Errorf("%q is not a number of bytes, such as 1500, 10MB or 4MiB", text)
	}
	return int64(v * factor), nil
}

// parseWhen parses a time, a date, or a duration from now; an empty text is the zero time.
func parseWhen(text string, now time.Time) (time.Time, error) {
	if text == "none" || text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2027-01-31T00:00:00Z, a date such as 2027-01-31, or a duration such as 720h", text)
}

// parsePast parses a time, a date (its beginning in UTC), or how long ago.
func parsePast(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time such as 2026-11-01T00:00:00Z, a date such as 2026-11-01, or a duration before now such as 24h", text)
}
