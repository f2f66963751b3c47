package splice

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"adit/tunnel/link/linktest"
)

// TestEachByteIsShownOnceAndFirst holds what the inspector sees: every byte in
// order, once, and before the origin has it, whoever writes it.
func TestEachByteIsShownOnceAndFirst(t *testing.T) {
	want := make([]byte, 2<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	dst := &linktest.Reluctant{Rand: rng}
	var shown []byte
	late := false
	err := Half(dst, &linktest.Offering{Left: want, Rand: rng}, func(b []byte) {
		late = late || dst.Len() > len(shown)
		shown = append(shown, b...)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if late || dst.Len() > len(shown) {
		t.Error("the origin had bytes before they were shown")
	}
	if !bytes.Equal(shown, want) {
		t.Errorf("shown: %d bytes that differ from the %d sent", len(shown), len(want))
	}
	if !bytes.Equal(dst.Bytes(), want) {
		t.Errorf("written: %d bytes that differ from the %d sent", dst.Len(), len(want))
	}
}
