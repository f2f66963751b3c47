package budget

import "testing"

func TestSharesStayWithinTheBudget(t *testing.T) {
	b := New(4 * step)
	one := Share{Budget: b, Free: step, Most: 10 * step}
	other := Share{Budget: b, Free: step, Most: 10 * step}
	for _, c := range []struct {
		what string
		s    *Share
		n    int64
		want bool
		used int64
	}{
		{"freely", &one, step, true, 0},
		{"a byte more", &one, step + 1, true, step},
		{"much", &one, 4 * step, true, 3 * step},
		{"the rest by another", &other, 2 * step, true, 4 * step},
		{"more than there is", &other, 2*step + 1, false, 4 * step},
		{"less, with a step kept", &one, step, true, 2 * step},
		{"what was given back", &other, 4 * step, true, 4 * step},
		{"a byte more than that", &other, 4*step + 1, false, 4 * step},
		{"more than it may", &one, 11 * step, false, 4 * step},
	} {
		if got := c.s.Holds(c.n); got != c.want || b.Used() != c.used {
			t.Errorf("%s: got %t with %d used, want %t with %d", c.what, got, b.Used(), c.want, c.used)
		}
	}
	if got := one.Room(); got != 2*step {
		t.Errorf("room for %d, want %d", got, 2*step)
	}
	if got := one.Left(step / 2); got != 3*step/2 {
		t.Errorf("%d left of a budget that is used up, want %d", got, 3*step/2)
	}
	one.Close()
	if got := other.Left(2 * step); got != 3*step {
		t.Errorf("%d left, want %d", got, 3*step)
	}
	other.Close()
	if b.Used() != 0 {
		t.Errorf("%d used after the end", b.Used())
	}
	if one.Holds(2 * step) {
		t.Error("a closed share holds more than is free")
	}
	unbounded := Share{Free: step, Most: 5 * step}
	if !unbounded.Holds(5*step) || unbounded.Holds(5*step+1) {
		t.Error("without a budget, what a share may hold is its own bound")
	}
}
