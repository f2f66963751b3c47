package flows

import (
	"slices"
	"testing"

	"adit/tunnel/wire"
)

// listener is a flow that notes what comes.
type listener struct {
	of    uint32
	came  []string
	calls int
	ended bool
}

func (v *listener) Endpoint() uint32 { return v.of }
func (v *listener) Over()            { v.ended = true }
func (v *listener) Take(payloads [][]byte) {
	v.calls++
	for _, b := range payloads {
		v.came = append(v.came, string(b))
	}
}

// TestAnswersOfOneFlowGoTogether mixes answers of two flows with the end of one, fragments of
// a large answer, another endpoint's answers and nonsense.
func TestAnswersOfOneFlowGoTogether(t *testing.T) {
	var table Table
	a, b := &listener{of: 1}, &listener{of: 2}
	var na, nb uint32
	table.Add(a, &na)
	table.Add(b, &nb)
	whole := func(endpoint, number uint32, text string) []byte {
		return wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowWhole, Endpoint: endpoint, Number: number, Payload: []byte(text)})
	}
	part := func(i uint8, text string) []byte {
		return wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowFragment, Endpoint: 1, Number: na, Packet: 7, Index: i, Count: 2, Payload: []byte(text)})
	}
	w := answers{of: &table, parts: new(wire.Reassembly)}
	for range 2 { // what is left of one list must not be seen in the next
		w.bring([][]byte{
			whole(1, na, "a1"), whole(1, na, "a2"), part(0, "a"),
			{0xff},
			part(1, "3"), whole(1, na, ""),
			whole(2, nb, "b1"), whole(9, na, "of another endpoint"), whole(1, 99, "of nobody"),
			whole(1, na, "a4"),
			whole(2, nb, "b2"), wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowClose, Endpoint: 2, Number: nb}),
		})
		if want := []string{"a1", "a2", "a3", "", "a4"}; !slices.Equal(a.came, want) || a.calls != 2 || a.ended {
			t.Errorf("the first got %q in %d calls, ended %v; want %q in 2", a.came, a.calls, a.ended, want)
		}
		if want := []string{"b1", "b2"}; !slices.Equal(b.came, want) || !b.ended {
			t.Errorf("the second got %q, ended %v; want %q and its end", b.came, b.ended, want)
		}
		*a, *b = listener{of: 1}, listener{of: 2}
	}
}

// TestFlowNumbersOfOldFlowsAreNotGivenAgain makes the numbers wrap around, as they do after
// 2^32 flows of one session.
func TestFlowNumbersOfOldFlowsAreNotGivenAgain(t *testing.T) {
	var table Table
	old, fresh := &Relayed{}, &Relayed{}
	table.Add(old, &old.number)
	table.next = old.number - 1
	table.Add(fresh, &fresh.number)
	if table.get(old.number) != Flow(old) || table.get(fresh.number) != Flow(fresh) {
		t.Errorf("a new flow got the number %d, old ones have %d", fresh.number, old.number)
	}
}
