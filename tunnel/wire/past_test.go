package wire

import "testing"

// TestPastFlowsAreBounded checks that the oldest flows are forgotten, one by one.
func TestPastFlowsAreBounded(t *testing.T) {
	var p Past[int]
	for n := range maxPast + 100 {
		p.Add(n)
		if oldest := max(0, n+1-maxPast); !p.Has(n) || !p.Has(oldest) || p.Has(oldest-1) {
			t.Fatalf("after %d: %d is there %v, %d %v, %d %v", n, n, p.Has(n), oldest, p.Has(oldest), oldest-1, p.Has(oldest-1))
		}
	}
	if len(p.keys) != maxPast {
		t.Errorf("%d are remembered, want %d", len(p.keys), maxPast)
	}
}
