package relay

import (
	"testing"
	"time"
)

func TestSizesAndTimes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1500": 1500, "10kB": 10_000, "1.5GB": 1_500_000_000, "4MiB": 4 << 20, "1TB": 1e12, "2 M": 2_000_000} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "x", "1XB", "1e30T", "MB", "NaN"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q: got %d", text, got)
		}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Time{"none": {}, "24h": now.Add(24 * time.Hour), "2027-01-31": time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC), "2027-01-31T01:00:00+01:00": time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)} {
		if got, err := parseWhen(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
}
