package console

import (
	"testing"
	"time"
)

func TestLoginsEndByTheClock(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name string
		made time.Duration // before now
		over bool
	}{
		{"new", 0, false},
		{"of some hours ago", loginLife - time.Second, false},
		{"at its end", loginLife, true},
		{"of before the clock was set back by hours", -clockSet, false},
		{"of a clock that stood in the next year", -9000 * time.Hour, true},
	} {
		made := now.Add(-c.made)
		if got := (login{Created: made, Expires: made.Add(loginLife)}).over(now); got != c.over {
			t.Errorf("%s: over is %v, want %v", c.name, got, c.over)
		}
	}
}
