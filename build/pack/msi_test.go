package main

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

// summary returns a stream of summary information with these three values.
func summary(code string, created, saved uint64) []byte {
	le := binary.LittleEndian
	var body []byte // follows the section's size, count and entries
	places := []uint32{}
	const head = 8 + 3*8
	add := func(kind uint32, value []byte) {
		places = append(places, uint32(head+len(body)))
		body = append(le.AppendUint32(body, kind), value...)
		for len(body)%4 != 0 {
			body = append(body, 0)
		}
	}
	add(0x1e, append(le.AppendUint32(nil, uint32(len(code)+1)), code+"\x00"...))
	add(0x40, le.AppendUint64(nil, created))
	add(0x40, le.AppendUint64(nil, saved))
	out := append(bytes.Repeat([]byte{1}, 28), summaryFormat...)
	out = le.AppendUint32(out, 48)
	out = le.AppendUint32(out, uint32(head+len(body)))
	out = le.AppendUint32(out, 3)
	for i, id := range []uint32{9, 12, 13} {
		out = le.AppendUint32(le.AppendUint32(out, id), places[i])
	}
	return append(out, body...)
}

func TestSteadyMakesSummariesEqual(t *testing.T) {
	const code = "6c1f6f0e-8d0b-5f3b-9a53-1d7b8a6c7e11"
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := append([]byte("what is before"), summary("{0D8102FB-A5A2-4700-BF9D-6177BA776C2B}", 1, 2)...)
	second := append([]byte("what is before"), summary("{1D8102FB-A5A2-4700-BF9D-6177BA776C2B}", 3, 4)...)
	for _, data := range [][]byte{first, second} {
		if err := steady(data, code, when); err != nil {
			t.Fatal(err)
		}
	}
	want := append([]byte("what is before"), summary("{"+strings.ToUpper(code)+"}", 134117966450000000, 134117966450000000)...)
	if !bytes.Equal(first, second) || !bytes.Equal(first, want) {
		t.Errorf("got %x and %x, want %x", first, second, want)
	}
}

func TestSteadyRefusesWhatItDoesNotKnow(t *testing.T) {
	whole := summary("{0D8102FB-A5A2-4700-BF9D-6177BA776C2B}", 1, 2)
	for name, data := range map[string][]byte{
		"empty": nil, "another file": []byte("MZ"), "cut off": whole[:60], "a short code": summary("{0D81}", 1, 2),
		"two summaries": append(whole, whole...),
	} {
		if err := steady(bytes.Clone(data), "6c1f6f0e-8d0b-5f3b-9a53-1d7b8a6c7e11", time.Unix(0, 0)); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func FuzzSteady(f *testing.F) {
	f.Add(summary("{0D8102FB-A5A2-4700-BF9D-6177BA776C2B}", 1, 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		size := len(data)
		// Only that it neither panics nor grows the file.
		_ = steady(data, "6c1f6f0e-8d0b-5f3b-9a53-1d7b8a6c7e11", time.Unix(0, 0))
		if len(data) != size {
			t.Error("the size changed")
		}
	})
}
