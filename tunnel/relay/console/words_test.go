package console

import (
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 12_345: "12 kB", 999_400: "999 kB", 999_600: "1.0 MB", 5_400_000_000: "5.4 GB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{1234 * time.Nanosecond: "1µs", 12_345_678: "12.3ms", 1_234_567_890: "1.23s"} {
		if got := took(d); got != want {
			t.Errorf("took(%d) = %q, want %q", d, got, want)
		}
	}
	for status, want := range map[int]string{101: "", 204: "ok", 308: "", 404: "warn", 499: "warn", 502: "bad"} {
		if got := tone(status); got != want {
			t.Errorf("tone(%d) = %q, want %q", status, got, want)
		}
	}
}
