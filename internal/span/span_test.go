package span

import (
	"testing"
	"time"
)

func TestDurationsReadAsAPersonSaysThem(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                      "0 ms",
		391 * time.Microsecond:                 "0.391 ms",
		1400 * time.Microsecond:                "1.4 ms",
		23420 * time.Microsecond:               "23.4 ms",
		250 * time.Millisecond:                 "250 ms",
		999900 * time.Microsecond:              "1 s",
		1230 * time.Millisecond:                "1.2 s",
		45 * time.Second:                       "45 s",
		119960 * time.Millisecond:              "2 minutes",
		2 * time.Minute:                        "2 minutes",
		125400 * time.Millisecond:              "2 minutes 5 s",
		90 * time.Minute:                       "90 minutes",
		90*time.Minute + 30*time.Second:        "91 minutes",
		2 * time.Hour:                          "2 hours",
		24 * time.Hour:                         "24 hours",
		25*time.Hour + 30*time.Minute:          "25 hours 30 minutes",
		25*time.Hour + time.Minute:             "25 hours 1 minute",
		time.Hour:                              "1 hour",
		time.Minute:                            "1 minute",
		48 * time.Hour:                         "2 days",
		73 * time.Hour:                         "3 days 1 hour",
		90 * 24 * time.Hour:                    "90 days",
		48*time.Hour - time.Second:             "2 days",
		23*time.Hour + 59*time.Minute + 59*1e9: "24 hours",
	} {
		if got := Text(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
