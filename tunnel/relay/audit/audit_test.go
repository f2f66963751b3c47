package audit

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// chain makes n entries.
func chain(tb testing.TB, n int) []Entry {
	tb.Helper()
	var list []Entry
	seq, head := uint64(0), Root
	for range n {
		e, err := Next(seq, head, time.Now(), Change{
			Node: "n1", Actor: Actor{Kind: KindUser, Name: "ann"}, Action: "client.add", Target: "shop <b>",
			Detail: map[string]any{"b": 1, "a": "é", "scope": map[string]any{"tunnels": 5}},
		})
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, e)
		seq, head = e.Seq, e.Hash
	}
	return list
}

// stored returns the entry as it is read back from where it was written.
func stored(tb testing.TB, e Entry) Entry {
	tb.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		tb.Fatal(err)
	}
	back, err := ParseEntry(text)
	if err != nil {
		tb.Fatal(err)
	}
	return back
}

func TestChainHoldsAfterItWasStored(t *testing.T) {
	v := Verifier{}
	list := chain(t, 20)
	for _, e := range list {
		if !v.Add(stored(t, e)) {
			t.Fatalf("entry %d: %+v", e.Seq, v.Result())
		}
	}
	if r := v.Result(); !r.OK || r.Entries != 20 || r.Head != list[19].Hash {
		t.Errorf("got %+v", r)
	}
	if r := (&Verifier{}).Result(); !r.OK || r.Entries != 0 || r.Head != Root {
		t.Errorf("an empty chain: %+v", r)
	}
}

func TestEveryAlterationShows(t *testing.T) {
	for name, c := range map[string]struct {
		alter  func([]Entry) []Entry
		broken uint64
	}{
		"another actor":        {func(l []Entry) []Entry { l[4].Actor.Name = "eve"; return l }, 5},
		"another time":         {func(l []Entry) []Entry { l[4].Time = l[4].Time.Add(time.Second); return l }, 5},
		"another detail":       {func(l []Entry) []Entry { l[4].Detail = json.RawMessage(`{}`); return l }, 5},
		"another action":       {func(l []Entry) []Entry { l[0].Action = "x"; return l }, 1},
		"its hash made to fit": {func(l []Entry) []Entry { l[4].Target = "x"; l[4].Hash = l[4].Sum(); return l }, 6},
		"one left out":         {func(l []Entry) []Entry { return append(l[:4], l[5:]...) }, 5},
		"two exchanged":        {func(l []Entry) []Entry { l[3], l[4] = l[4], l[3]; return l }, 4},
		"the first left out":   {func(l []Entry) []Entry { return l[1:] }, 1},
		"one twice":            {func(l []Entry) []Entry { return append(l[:5:5], l[4:]...) }, 6},
	} {
		v := Verifier{}
		for _, e := range c.alter(chain(t, 10)) {
			v.Add(e)
		}
		if r := v.Result(); r.OK || r.BrokenAt != c.broken || r.Reason == "" {
			t.Errorf("%s: got %+v, want broken at %d", name, r, c.broken)
		}
	}
}

func TestCutOffEndShowsByTheNotedHead(t *testing.T) {
	list := chain(t, 10)
	v := Verifier{Wanted: list[9].Hash}
	for _, e := range list[:8] {
		v.Add(e)
	}
	if r := v.Result(); r.OK || !strings.Contains(r.Reason, "cut off") {
		t.Errorf("cut off: %+v", r)
	}
	v = Verifier{Wanted: list[4].Hash}
	for _, e := range list {
		v.Add(e)
	}
	if r := v.Result(); !r.OK {
		t.Errorf("grown since: %+v", r)
	}
}

func TestEntriesAreBounded(t *testing.T) {
	e, err := Next(0, Root, time.Now(), Change{Action: "a", Detail: strings.Repeat("x", MaxEntry)})
	if err != nil || !strings.Contains(string(e.Detail), "too_large") {
		t.Errorf("a large detail: %s, %v", e.Detail, err)
	}
	if _, err := Next(0, Root, time.Now(), Change{Action: "a", Target: strings.Repeat("x", MaxEntry)}); err == nil {
		t.Error("a large target is taken")
	}
}

func TestActorTravelsInTheContext(t *testing.T) {
	if a := ActorOf(t.Context()); a.Kind != KindSystem {
		t.Errorf("without one: %+v", a)
	}
	want := Actor{KindUser, "ann", "203.0.113.9"}
	if a := ActorOf(WithActor(context.Background(), want)); a != want {
		t.Errorf("got %+v", a)
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add([]byte(`{"seq":1,"time":"2026-01-02T03:04:05Z","actor":{"kind":"user"},"action":"a","prev":"","hash":""}`))
	f.Add([]byte(`{"seq":1,"detail":{"a":[1,2]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ParseEntry(b)
		if err != nil {
			return
		}
		sum := e.Sum()
		text, err := json.Marshal(e)
		if err != nil {
			return // a time that JSON does not know
		}
		back, err := ParseEntry(text)
		if err == nil && back.Sum() != sum {
			t.Errorf("%s: another hash once it is stored", b)
		}
	})
}
