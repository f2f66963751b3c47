package e2e

import (
	"bytes"
	"io"
	"testing"
)

func TestPatternIsTheSameInPieces(t *testing.T) {
	whole := make([]byte, 1000)
	(&pattern{}).Read(whole)
	var pieces []byte
	for p, size := (&pattern{}), 1; len(pieces) < 900; size = size*3%17 + 1 {
		piece, err := io.ReadAll(io.LimitReader(p, int64(size)))
		if err != nil {
			t.Fatal(err)
		}
		pieces = append(pieces, piece...)
	}
	if !bytes.Equal(whole[:len(pieces)], pieces) {
		t.Error("the pattern read in pieces differs")
	}
}
