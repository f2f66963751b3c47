//go:build !race

package quiet

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/nats-io/nats-server/v2/server/pse"
)

// TestSamplerHasNothingToRead fails if the library changes the way it samples.
func TestSamplerHasNothingToRead(t *testing.T) {
	var cpu float64
	var resident, virtual int64
	if err := pse.ProcUsage(&cpu, &resident, &virtual); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v and %d bytes, want no such file", err, resident)
	}
}
