package wire

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

func TestFlowComesBack(t *testing.T) {
	for _, c := range flows {
		got, err := ParseFlow(AppendFlow(nil, c.flow))
		if err != nil || !reflect.DeepEqual(got, c.flow) {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, got, err, c.flow)
		}
	}
}

func TestFlowRefused(t *testing.T) {
	fragment := func(index, count byte) []byte {
		return AppendFlow(nil, Flow{Kind: FlowFragment, Index: index, Count: count, Payload: []byte("x")})
	}
	for name, b := range map[string][]byte{
		"empty":              {},
		"cut header":         make([]byte, FlowHeader-1),
		"kind 0":             make([]byte, FlowHeader),
		"one fragment":       fragment(0, 1),
		"index beyond count": fragment(2, 2),
		"too many fragments": fragment(0, 129),
		"empty fragment":     AppendFlow(nil, Flow{Kind: FlowFragment, Count: 2}),
		"close with payload": AppendFlow(nil, Flow{Kind: FlowClose, Payload: []byte("x")}),
		"from, too long":     AppendFlow(nil, Flow{Kind: FlowFrom, Payload: bytes.Repeat([]byte("x"), maxFrom+1)}),
		"withheld, payload":  AppendFlow(nil, Flow{Kind: FlowWithheld, Payload: []byte("x")}),
		"too long":           AppendFlow(nil, Flow{Kind: FlowWhole, Payload: make([]byte, MaxUDPPayload+1)}),
	} {
		if _, err := ParseFlow(b); !errors.Is(err, ErrFlow) {
			t.Errorf("%s: got %v, want ErrFlow", name, err)
		}
	}
}

func TestSplitAndReassembleAnySize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var r Reassembly
	var buf []byte
	for i, size := range []int{0, 1, 1187, 1191, 1192, 1200, 2400, 9000, MaxUDPPayload} {
		payload := make([]byte, size)
		for j := range payload {
			payload[j] = byte(rng.Uint32())
		}
		var sent [][]byte
		var err error
		buf, err = SplitFlow(buf, Flow{Endpoint: 1, Number: 2, Packet: uint16(i), Payload: payload}, 1200, func(b []byte) error {
			if len(b) > 1200 {
				t.Errorf("size %d: a datagram of %d bytes", size, len(b))
			}
			sent = append(sent, bytes.Clone(b))
			return nil
		})
		if err != nil {
			t.Fatalf("size %d: %v", size, err)
		}
		rng.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
		var got []byte
		complete := 0
		for _, b := range sent {
			f, err := ParseFlow(b)
			if err != nil {
				t.Fatal(err)
			}
			if whole := r.Add(f); whole != nil {
				got = whole
				complete++
			}
			r.Add(f) // a repeated datagram changes nothing
		}
		if !bytes.Equal(got, payload) || complete != 1 {
			t.Errorf("size %d: got %d bytes, complete %d times", size, len(got), complete)
		}
	}
	if _, err := SplitFlow(nil, Flow{Payload: make([]byte, 60000)}, 100, func([]byte) error { return nil }); !errors.Is(err, ErrFlow) {
		t.Errorf("too small datagrams: got %v, want ErrFlow", err)
	}
}

func TestReassemblyIsBounded(t *testing.T) {
	var r Reassembly
	for i := range 10_000 {
		r.Add(Flow{Kind: FlowFragment, Number: uint32(i), Count: 2, Payload: make([]byte, 60_000)})
		kept := 0
		for _, p := range r.parts {
			kept += p.size
		}
		if len(r.parts) > maxPartialPackets || len(r.parts) != len(r.order) || kept > maxPartialBytes || r.bytes != kept {
			t.Fatalf("after %d: %d packets, %d in order, %d bytes, %d counted", i, len(r.parts), len(r.order), kept, r.bytes)
		}
	}
	for i := range uint8(128) {
		if r.Add(Flow{Kind: FlowFragment, Count: 128, Index: i, Payload: make([]byte, 60_000)}) != nil {
			t.Fatal("a packet larger than UDP's came out")
		}
	}
}

// begin adds the first of two fragments of a packet, and end says whether the second
// makes it whole.
func begin(r *Reassembly, packet uint16, size int) {
	r.Add(Flow{Kind: FlowFragment, Packet: packet, Count: 2, Payload: make([]byte, size)})
}

func end(r *Reassembly, packet uint16) (whole bool) {
	return r.Add(Flow{Kind: FlowFragment, Packet: packet, Index: 1, Count: 2, Payload: []byte("x")}) != nil
}

// TestPacketLongerThanUDPs has few fragments, each of a permitted size.
func TestPacketLongerThanUDPs(t *testing.T) {
	var r Reassembly
	begin(&r, 1, MaxUDPPayload)
	if end(&r, 1) {
		t.Error("a packet larger than UDP's came out")
	}
	begin(&r, 2, MaxUDPPayload-1)
	if !end(&r, 2) {
		t.Error("the largest packet did not come out")
	}
}

// TestPacketsBegunLongestAgoMakeRoom completes other packets in the meantime.
func TestPacketsBegunLongestAgoMakeRoom(t *testing.T) {
	var r Reassembly
	begin(&r, 0, 1)
	begin(&r, 1, 1)
	for range 3 {
		begin(&r, 2, 1)
		if !end(&r, 2) {
			t.Fatal("a packet did not come out")
		}
	}
	for n := range maxPartialPackets - 1 {
		begin(&r, uint16(10+n), 1)
	}
	if !end(&r, 1) {
		t.Error("the packet that was begun second made room")
	}
	if end(&r, 0) {
		t.Error("the packet that was begun first did not make room")
	}
}

// TestPacketsOfOneNumberAndOtherCounts has an agent that numbers its packets wrongly. Nothing
// of the earlier packet remains.
func TestPacketsOfOneNumberAndOtherCounts(t *testing.T) {
	var r Reassembly
	for n := range 100 {
		count := uint8(2 + n%2)
		if r.Add(Flow{Kind: FlowFragment, Index: count - 1, Count: count, Payload: make([]byte, 60_000)}) != nil {
			t.Fatal("parts of different packets came out as one")
		}
	}
	begin(&r, 1, 60_000)
	if !end(&r, 1) {
		t.Error("packets that are no more take the room of others")
	}
}

func FuzzFlow(f *testing.F) {
	for _, c := range flows {
		f.Add(AppendFlow(nil, c.flow))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseFlow(b)
		if err != nil {
			return
		}
		if out := AppendFlow(nil, got); !bytes.Equal(out, b) {
			t.Fatalf("%x goes out as %x", b, out)
		}
		var r Reassembly
		for range 3 {
			if whole := r.Add(got); len(whole) > MaxUDPPayload {
				t.Fatalf("%d bytes came out", len(whole))
			}
		}
	})
}

// TestPartsOfPacketsOfOneNumberAreNotMixed checks that a packet that has lost a fragment is
// not completed by a later one, which has the same number after a wrap-around.
func TestPartsOfPacketsOfOneNumberAreNotMixed(t *testing.T) {
	for _, lost := range []int{0, 1} {
		var r Reassembly
		split := func(number uint16, text byte, skip int) (whole []byte) {
			payload := bytes.Repeat([]byte{text}, 20)
			i := 0
			_, err := SplitFlow(nil, Flow{Endpoint: 1, Number: 2, Packet: number, Payload: payload}, FragmentHeader+10, func(b []byte) error {
				f, err := ParseFlow(b)
				if err != nil {
					return err
				}
				if i != skip {
					if got := r.Add(f); got != nil {
						whole = got
					}
				}
				i++
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return whole
		}
		split(7, 'a', lost)
		for n := range 1<<16 - 1 {
			if got := split(uint16(8+n), 'b', -1); len(got) != 20 {
				t.Fatalf("packet %d: got %d bytes", n, len(got))
			}
		}
		if got := split(7, 'c', -1); string(got) != strings.Repeat("c", 20) {
			t.Errorf("part %d lost: got %q, want the later packet's bytes alone", lost, got)
		}
	}
}

func TestWhoseAFlowIs(t *testing.T) {
	for _, want := range []From{
		{Visitor: netip.MustParseAddrPort("192.0.2.1:5000")},
		{Visitor: netip.MustParseAddrPort("[2001:db8::1]:1"), Client: "laptop"},
	} {
		d, err := ParseFlow(want.Datagram(3, 4))
		if err != nil || d.Kind != FlowFrom || d.Endpoint != 3 || d.Number != 4 {
			t.Fatalf("%v: got %+v, %v", want, d, err)
		}
		if got, err := ParseFrom(d.Payload); err != nil || got != want {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	for _, text := range []string{"", "192.0.2.1", "192.0.2.1:5000 ", "192.0.2.1:5000 Lap top", "nas:5000", "192.0.2.1:5000 " + strings.Repeat("a", maxFrom)} {
		if got, err := ParseFrom([]byte(text)); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func FuzzParseFrom(f *testing.F) {
	f.Add([]byte("192.0.2.1:5000"))
	f.Add([]byte("[2001:db8::1%1]:1 laptop"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseFrom(b)
		if err != nil {
			return
		}
		d, err := ParseFlow(got.Datagram(1, 2))
		if err != nil {
			t.Fatalf("%q goes out as what does not parse: %v", b, err)
		}
		if again, err := ParseFrom(d.Payload); err != nil || again != got {
			t.Fatalf("%q is %+v, which is %+v, %v", b, got, again, err)
		}
	})
}
