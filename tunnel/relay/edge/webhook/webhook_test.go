package webhook

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"testing"

	"adit/internal/netblock"
)

func block(n int) netip.Prefix { return netblock.Of(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})) }

// TestRoomForBodiesIsBounded uses up the room of an address, of an endpoint and of a node.
func TestRoomForBodiesIsBounded(t *testing.T) {
	room := new(Room)
	of := func(h *Holding, n int) *keptBody { return &keptBody{of: h, from: block(n)} }
	all := func(h *Holding, n int) (taken int64) {
		for h.take(of(h, n), lastPart) {
			taken += lastPart
		}
		return taken
	}
	first := Holding{Of: room}
	if got := all(&first, 1); got != heldOfAddress {
		t.Errorf("one address has %d, want %d", got, heldOfAddress)
	}
	if got := all(&first, 2); got != heldOfEndpoint-heldOfAddress {
		t.Errorf("the second has %d, want the rest of the endpoint's", got)
	}
	var sum int64 = heldOfEndpoint
	for range 10 {
		h := Holding{Of: room}
		for n := range 3 {
			sum += all(&h, n)
		}
	}
	if sum != heldOfAll {
		t.Errorf("the node holds %d, want %d", sum, heldOfAll)
	}
	if first.give(of(&first, 1), lastPart); !first.take(of(&first, 2), lastPart) {
		t.Error("what was given back cannot be taken")
	}
}

// TestWhoHoldsMostMakesRoom lets two strangers hold everything that an endpoint may hold, and
// others everything that a node may hold, with bodies that do not end. Visitors with less are
// not kept out.
func TestWhoHoldsMostMakesRoom(t *testing.T) {
	room := new(Room)
	ended := map[*keptBody]bool{}
	begins := func(h *Holding, n int) *keptBody {
		k := &keptBody{of: h, from: block(n), most: heldOfAll}
		k.end = func() { ended[k] = true }
		h.begin(k)
		return k
	}
	size := map[*keptBody]int64{}
	fill := func(h *Holding, n int) *keptBody {
		k := begins(h, n)
		for h.take(k, lastPart) {
			size[k] += lastPart
		}
		return k
	}
	site := &Holding{Of: room}
	first, second := fill(site, 1), fill(site, 2)
	if len(ended) > 0 {
		t.Error("who fills the room has others end")
	}
	small := begins(site, 3)
	if err := small.keep(make([]byte, 100<<10)); err != nil {
		t.Errorf("one more body: %v", err)
	}
	if !ended[first] || ended[second] || ended[small] {
		t.Errorf("ended: the first: %v, the second: %v, the small one: %v", ended[first], ended[second], ended[small])
	}
	site.give(first, size[first]) // as one does that has ended
	if got := site.Bytes(); got > heldOfEndpoint || site.held.leaving != 0 || room.all.leaving != 0 {
		t.Errorf("%d bytes are held, and %d and %d on their way out", got, site.held.leaving, room.all.leaving)
	}

	clear(ended)
	for i := range 4 { // other sites have the rest of what there is on the node
		h := &Holding{Of: room}
		fill(h, 10+2*i)
		fill(h, 11+2*i)
	}
	if got := room.all.all; got < heldOfAll {
		t.Fatalf("%d bytes are held on the node", got)
	}
	if err := begins(&Holding{Of: room}, 5).keep(make([]byte, 100<<10)); err != nil || len(ended) == 0 {
		t.Errorf("a body of another site: %v, and %d have ended", err, len(ended))
	}
	if got := room.all.all; got > heldOfAll+heldOfAll/8 {
		t.Errorf("%d bytes are held on the node", got)
	}
}

// TestOnlyBodiesThatComeMakeRoom checks that only bodies that are still arriving at the full
// endpoint make room, not one that has arrived and is being forwarded, nor one of another
// endpoint.
func TestOnlyBodiesThatComeMakeRoom(t *testing.T) {
	var ended []*keptBody
	holds := func(h *Holding, n int, bytes int64) *keptBody {
		k := &keptBody{of: h, from: block(n), most: heldOfAll}
		k.end = func() { ended = append(ended, k) }
		h.begin(k)
		for ; bytes > 0 && h.take(k, lastPart); bytes -= lastPart {
		}
		return k
	}
	room := new(Room)
	site, other := &Holding{Of: room}, &Holding{Of: room}
	one, two := holds(site, 1, heldOfAddress/2), holds(site, 1, heldOfAddress/2)
	has := holds(site, 2, heldOfAll)
	holds(other, 1, heldOfAll) // of the same stranger, and longer
	site.come(has)
	small := holds(site, 3, 0)
	if err := small.keep(make([]byte, 1)); err != nil || len(ended) != 1 || ended[0] != one && ended[0] != two {
		t.Fatalf("one more body: got error %v, %d ended, want one of the stranger's that come", err, len(ended))
	}
	site.give(ended[0], heldOfAddress/2)
	rest := holds(site, 4, heldOfAll)
	for _, k := range []*keptBody{one, two, small, rest} {
		site.come(k)
	}
	ended = nil
	last := holds(site, 5, 0)
	if err := last.keep(make([]byte, 2*lastPart)); !errors.Is(err, errNoRoom) || len(ended) > 0 {
		t.Errorf("where all have come: got error %v, %d ended, want no room", err, len(ended))
	}
}

func TestKeptBody(t *testing.T) {
	at := &Holding{Of: new(Room)}
	want := make([]byte, 1<<20+5)
	for i := range want {
		want[i] = byte(i >> 3)
	}
	keep := func() *keptBody {
		k := &keptBody{of: at, from: block(1), most: int64(len(want))}
		for left := want; len(left) > 0; {
			n := min(len(left), 7777)
			if err := k.keep(left[:n]); err != nil {
				t.Fatal(err)
			}
			left = left[n:]
		}
		return k
	}
	k := keep()
	for range 2 { // it is there for every secret
		var out bytes.Buffer
		if k.writeTo(&out); !bytes.Equal(out.Bytes(), want) {
			t.Error("it writes something else")
		}
	}
	if held := at.Bytes(); held < int64(len(want)) || held > 2*int64(len(want)) {
		t.Errorf("%d bytes are held of %d", held, len(want))
	}
	if err := k.keep([]byte("x")); !errors.Is(err, errTooLong) {
		t.Errorf("one byte more: %v", err)
	}
	got := make([]byte, len(want)/2)
	if _, err := io.ReadFull(k, got); err != nil || !bytes.Equal(got, want[:len(got)]) {
		t.Errorf("it reads something else: %v", err)
	}
	if held := at.Bytes(); held > int64(len(want)) {
		t.Errorf("%d bytes are held after half was read", held)
	}
	if rest, err := io.ReadAll(k); err != nil || !bytes.Equal(rest, want[len(got):]) || at.Bytes() != 0 {
		t.Errorf("the rest is something else: %v, %d held", err, at.Bytes())
	}
	k.Close()
	if _, err := k.Read(got); err != io.EOF {
		t.Errorf("it ends with %v", err)
	}

	// One that is closed half-way is not taken for a whole one.
	k = keep()
	k.Read(got)
	if k.Close(); at.Bytes() != 0 {
		t.Errorf("%d bytes are held of one that is closed", at.Bytes())
	}
	if n, err := k.Read(got); n != 0 || err == nil || err == io.EOF {
		t.Errorf("a closed one reads %d bytes, %v", n, err)
	}
	if err := k.keep([]byte("x")); err == nil && at.Bytes() != 0 {
		t.Error("a closed one takes room")
	}
}
