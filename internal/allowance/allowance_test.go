package allowance

import (
	"math"
	"testing"
)

func TestAMachineHasABound(t *testing.T) {
	if got := Memory(); got < 64<<20 || got == math.MaxInt64 {
		t.Errorf("memory: %d bytes", got)
	}
	if got := Files(); got < 64 {
		t.Errorf("files: %d", got)
	}
}
