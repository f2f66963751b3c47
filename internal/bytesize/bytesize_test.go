package bytesize

import (
	"math"
	"testing"
)

func TestText(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 30: "3.0 GiB", math.MaxInt64: "8192.0 PiB",
	} {
		if got := Text(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
