package reliable

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write golden files anew")

// examples are frames as they stand on the wire, with the name that the golden
// file gives them.
func examples() map[string][]byte {
	return map[string][]byte{
		"padding":             {0, 0, 0},
		"ping":                {framePing},
		"ack":                 appendAck(nil, []span{{1000, 1100}}, 8*time.Millisecond, 100),
		"ack ranges":          appendAck(nil, []span{{1000, 1100}, {900, 950}, {3, 3}}, time.Millisecond, 100),
		"reset_stream":        appendNumbers(nil, frameResetStream, 4, 0, 1<<20),
		"stop_sending":        appendNumbers(nil, frameStopSending, 5, 0),
		"stream":              append(appendStreamHeader(nil, 8, 70000, 5, false), "hello"...),
		"stream fin":          append(appendStreamHeader(nil, 8, 70005, 1, true), "!"...),
		"max_data":            appendNumbers(nil, frameMaxData, 4<<20),
		"max_stream_data":     appendNumbers(nil, frameMaxStreamData, 4, 1<<30),
		"max_streams":         appendNumbers(nil, frameMaxStreams, 16384),
		"data_blocked":        appendNumbers(nil, frameDataBlocked, 4<<20),
		"stream_data_blocked": appendNumbers(nil, frameStreamDataBlocked, 4, 512<<10),
		"streams_blocked":     appendNumbers(nil, frameStreamsBlocked, 1024),
		"close":               appendClose(nil, codeFlowControl, "more than the session's window"),
		"datagram":            appendDatagram(nil, []byte("ping")),
	}
}

func TestFramesKeepTheirBytes(t *testing.T) {
	var names []string
	frames := examples()
	for name := range frames {
		names = append(names, name)
	}
	slices.Sort(names)
	var got strings.Builder
	for _, name := range names {
		var f frame
		n, err := decodeFrame(frames[name], &f)
		if err != nil || n != len(frames[name]) {
			t.Fatalf("%s: decoded %d of %d bytes: %v", name, n, len(frames[name]), err)
		}
		fmt.Fprintf(&got, "%s: %s\n\tstream=%d offset=%d value=%d fin=%v data=%q delay=%v ranges=%v\n", name,
			hex.EncodeToString(frames[name]), f.Stream, f.Offset, f.Value, f.Fin, f.Data, f.Delay, f.Ranges)
	}
	const golden = "testdata/frames.golden"
	if *update {
		os.MkdirAll("testdata", 0o755)
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("frames have changed; got:\n%s\nwant:\n%s", got.String(), want)
	}
}

func TestMalformedFramesAreRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":                {},
		"unknown type":         {0x3f},
		"reserved type":        {0xf0},
		"type of two bytes":    {0x40, 0x01},
		"short number":         {frameMaxData, 0xc0, 0},
		"stream beyond packet": {frameStream | streamLength, 0, 5, 'a'},
		"stream beyond offset": append(appendVarint([]byte{frameStream | streamOffset, 0}, maxVarint), 'a'),
		"ack below zero":       {frameAck, 5, 0, 0, 6},
		"ack gap below zero":   {frameAck, 5, 0, 1, 0, 5, 0},
		"ack range below zero": {frameAck, 9, 0, 1, 0, 1, 7},
		"ack of many ranges":   manyRanges(maxAckRanges),
		"ack without a range":  {frameAck, 9, 0, 1, 0, 0},
		"ack without an end":   {frameAck, 9, 0, 0},
		"long reason":          longReason(maxReason + 1),
		"datagram too long":    {frameDatagram | 1, 9, 'x'},
	} {
		var f frame
		if n, err := decodeFrame(b, &f); err == nil {
			t.Errorf("%s: got %d bytes as %+v, want an error", name, n, f)
		}
	}
}

// manyRanges is an ACK of one range and more.
func manyRanges(more uint64) []byte {
	b := appendVarint(appendVarint([]byte{frameAck}, 1<<20), 0)
	b = append(appendVarint(b, more), 0)
	return append(b, make([]byte, 2*more)...)
}

func longReason(size int) []byte {
	return append(appendVarint([]byte{frameClose, 0}, uint64(size)), strings.Repeat("x", size)...)
}

// TestFramesAtTheirBoundsAreTaken has those that are just short of TestMalformedFramesAreRefused.
func TestFramesAtTheirBoundsAreTaken(t *testing.T) {
	for name, b := range map[string][]byte{
		"ack down to zero":     {frameAck, 5, 0, 0, 5},
		"ack range to zero":    {frameAck, 9, 0, 1, 0, 0, 7},
		"ack gap down to zero": {frameAck, 5, 0, 1, 0, 3, 0},
		"ack of many ranges":   manyRanges(maxAckRanges - 1),
		"long reason":          longReason(maxReason),
		"reason cut to size":   appendClose(nil, codeNone, strings.Repeat("x", maxReason+1)),
	} {
		var f frame
		if n, err := decodeFrame(b, &f); err != nil || n != len(b) {
			t.Errorf("%s: took %d of %d bytes, %v", name, n, len(b), err)
		}
	}
}

func FuzzFrames(f *testing.F) {
	for _, b := range examples() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var fr frame
		for len(b) > 0 {
			n, err := decodeFrame(b, &fr)
			if err != nil {
				return
			}
			if n <= 0 || n > len(b) || len(fr.Data) > n || len(fr.Ranges) > maxAckRanges {
				t.Fatalf("took %d of %d bytes: %+v", n, len(b), fr)
			}
			if fr.Type == frameAck {
				for i, r := range fr.Ranges {
					if r.lo > r.hi || i > 0 && r.hi+1 >= fr.Ranges[i-1].lo {
						t.Fatalf("ranges out of order: %v", fr.Ranges)
					}
				}
				again := appendAck(nil, fr.Ranges, fr.Delay, 1<<20)
				var back frame
				if _, err := decodeFrame(again, &back); err != nil || !slices.Equal(back.Ranges, fr.Ranges) {
					t.Fatalf("encoded anew: %v, %v; want %v", err, back.Ranges, fr.Ranges)
				}
			}
			b = b[n:]
		}
	})
}

// FuzzRanges holds the sets of numbers against a plain bitmap.
func FuzzRanges(f *testing.F) {
	f.Add([]byte{1, 5, 10, 20, 5, 10, 0, 30, 129, 3})
	addLong(f, random(20_000))
	f.Fuzz(func(t *testing.T, ops []byte) {
		var set intervals
		var bits [512]bool
		for ; len(ops) >= 2; ops = ops[2:] {
			lo := uint64(ops[0])
			hi := lo + uint64(ops[1]&0x7f)
			if ops[1]&0x80 != 0 {
				set.remove(lo, hi)
				for i := lo; i < hi; i++ {
					bits[i] = false
				}
				continue
			}
			var want uint64
			for i := lo; i < hi; i++ {
				if !bits[i] {
					want++
				}
				bits[i] = true
			}
			if got := set.add(lo, hi); got != want {
				t.Fatalf("add(%d, %d): got %d new, want %d", lo, hi, got, want)
			}
		}
		for i, want := range bits {
			if got := slices.ContainsFunc(set, func(s span) bool { return s.lo <= uint64(i) && uint64(i) < s.hi }); got != want {
				t.Fatalf("%d: got %v, want %v in %v", i, !want, want, set)
			}
		}
		for i := 1; i < len(set); i++ {
			if set[i-1].hi >= set[i].lo {
				t.Fatalf("not disjoint: %v", set)
			}
		}
	})
}

// addLong adds a long input, unless the fuzzer runs: it would spend its time on variants.
func addLong(f *testing.F, input []byte) {
	if fuzzed := flag.Lookup("test.fuzz"); fuzzed == nil || fuzzed.Value.String() == "" {
		f.Add(input)
	}
}

// random are n bytes, the same each time.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
}

// FuzzPieces holds what has come of a stream against a plain bitmap: in runs that
// are split and joined, as the numbers are spread.
func FuzzPieces(f *testing.F) {
	many := make([]byte, 0, 1200)
	for i := range 400 {
		many = append(many, byte(i*7%256), byte(i*7/256%4), 0)
	}
	f.Add(many)
	f.Add(append(many, 0, 0, 255, 10, 1, 200))
	joined := random(9_000) // with one in eight that touches several, also of the next run
	for i := 2; i < len(joined); i += 3 {
		if joined[i] = joined[i] % 16; i%8 > 0 {
			joined[i] = 0
		}
	}
	addLong(f, slices.Concat(many, joined))
	f.Fuzz(func(t *testing.T, ops []byte) {
		var p pieces
		var bits [1024 + 256*8]bool
		for ; len(ops) >= 3; ops = ops[3:] {
			lo := uint64(ops[0]) | uint64(ops[1]&3)<<8
			hi := lo + 1 + uint64(ops[2])*8
			var want uint64
			for i := lo; i < hi; i++ {
				if !bits[i] {
					want++
				}
				bits[i] = true
			}
			if got := p.add(lo, hi); got != want {
				t.Fatalf("add(%d, %d): got %d new, want %d", lo, hi, got, want)
			}
		}
		all := slices.Concat(p.runs...)
		if len(all) != p.n || p.n > 0 && all[0] != p.first() {
			t.Fatalf("%d pieces of %d: %v", p.n, len(all), p.runs)
		}
		for _, run := range p.runs {
			if len(run) == 0 || len(run) > 2*pieceRun {
				t.Fatalf("a run of %d pieces", len(run))
			}
		}
		for i := 1; i < len(all); i++ {
			if all[i-1].hi >= all[i].lo {
				t.Fatalf("not disjoint: %v", all)
			}
		}
		n := 0
		for i, want := range bits {
			for n < len(all) && all[n].hi <= uint64(i) {
				n++
			}
			if got := n < len(all) && all[n].lo <= uint64(i); got != want {
				t.Fatalf("%d: got %v, want %v in %v", i, got, want, all)
			}
		}
	})
}

// FuzzReceived holds what an ACK tells to what has arrived and was not forgotten: what
// it leaves out is sent again for nothing, and what it adds is lost.
func FuzzReceived(f *testing.F) {
	f.Add([]byte{0, 1, 2, 4, 6, 5, 3, 200, 9})
	addLong(f, random(20_000))
	f.Fuzz(func(t *testing.T, numbers []byte) {
		var r received
		seen := make(map[uint64]bool)
		var base, newest uint64
		for i, n := range numbers {
			number := base + uint64(n)
			switch i % 16 {
			case 14: // in order
				number = newest + 1
			case 15:
				base += 100
			}
			gap := len(seen) > 0 && number != newest+1
			fresh, reordered := r.add(number)
			if fresh == seen[number] || fresh && reordered != gap {
				t.Fatalf("%d after %d: fresh %v, reordered %v, want %v, %v", number, newest, fresh, reordered, !seen[number], gap)
			}
			seen[number] = true
			newest = max(newest, number)
			floor := r.floor
			switch n {
			case 77:
				r.forget(number)
				floor = max(floor, number+1)
			case 78:
				r.forget(newest)
				floor = newest + 1
			}
			ranges := r.ranges(nil)
			if floor = min(floor, ranges[0].lo); len(ranges) > keptRanges || ranges[0].hi != newest || r.floor != floor {
				t.Fatalf("%d ranges, the newest %v, from %d on; want up to %d and from %d on", len(ranges), ranges[0], r.floor, newest, floor)
			}
			told := 0
			for _, e := range ranges {
				for v := e.lo; v <= e.hi; v++ {
					if !seen[v] {
						t.Fatalf("tells %d, which never arrived", v)
					}
					told++
				}
			}
			for v := range seen {
				if v >= r.floor {
					told--
				} else {
					delete(seen, v)
				}
			}
			if told != 0 {
				t.Fatalf("%d more are told than are to be: %v from %d on", told, ranges, r.floor)
			}
		}
	})
}

func TestAckFitsItsRoom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var ranges []span
	for at := uint64(1 << 40); len(ranges) < 100; at -= 2 + rng.Uint64N(1<<20) {
		lo := at - rng.Uint64N(1<<10)
		ranges = append(ranges, span{lo, at})
		at = lo
	}
	for room := range 600 {
		b := appendAck(nil, ranges, time.Second, room)
		if len(b) > room {
			t.Fatalf("room %d: got %d bytes", room, len(b))
		}
		if len(b) == 0 {
			continue
		}
		var f frame
		if n, err := decodeFrame(b, &f); err != nil || n != len(b) || !slices.Equal(f.Ranges, ranges[:len(f.Ranges)]) {
			t.Fatalf("room %d: %v", room, err)
		}
	}
	if !bytes.Equal(appendAck(nil, nil, 0, 100), nil) {
		t.Error("an ACK of nothing")
	}
}
