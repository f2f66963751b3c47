package portrange

import "testing"

func TestFits(t *testing.T) {
	for _, c := range []struct {
		ports         int
		local, remote int
		want          bool
	}{
		{1, 65535, 0, true},
		{2, 65535, 0, false},
		{256, 65280, 65280, true},
		{256, 22, 65281, false},
		{1, 22, 65536, false},
	} {
		if got := Fits(c.ports, c.local, c.remote); got != c.want {
			t.Errorf("%d ports from %d and %d on: got %t, want %t", c.ports, c.local, c.remote, got, c.want)
		}
	}
}

func TestNth(t *testing.T) {
	if got := Nth(20000, 3); got != 20003 {
		t.Errorf("got %d, want 20003", got)
	}
	if got := Nth(0, 3); got != 0 {
		t.Errorf("what the relay chooses became %d", got)
	}
}
