package command

import "testing"

func TestALineThatFitsStaysAsItIs(t *testing.T) {
	if got, want := fitted("  -x, --long string   of many words\n", 38), "  -x, --long string   of many words\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
