package lend

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

func TestMoreIsLentToOneThatFillsIt(t *testing.T) {
	var b Buffer
	for i, step := range []struct{ n, next int }{
		{Small - 1, Small},
		{Small, Large},
		{Small, Large},
		{Large, Huge},
		{Large, Huge},
		{Huge, Huge},
		{Large - 1, Large},
		{Small - 1, Small},
		{0, Small},
		{Small, Large},
		{0, Small},
	} {
		b.Lend()
		b.Done(step.n)
		if b.Holds() {
			t.Errorf("step %d: memory is held after Done", i)
		}
		if got := len(b.Lend()); got != step.next {
			t.Errorf("step %d: after a read of %d bytes %d are lent, want %d", i, step.n, got, step.next)
		}
		b.Return()
	}
}

func TestWhatIsLentStaysTheSame(t *testing.T) {
	var b Buffer
	b.Lend()[0] = 7
	if b.Lend()[0] != 7 {
		t.Error("a second Lend is other memory")
	}
	b.Return()
	b.Return() // of nothing
	if b.Holds() {
		t.Error("memory is held after Return")
	}
}

// TestReadBringsAllBytes reads from one that is no Reader, and to the end.
func TestReadBringsAllBytes(t *testing.T) {
	want := bytes.Repeat([]byte("adit"), 100_000)
	var b Buffer
	var got []byte
	for src := iotest.DataErrReader(bytes.NewReader(want)); ; {
		part, err := Read(src, &b)
		got = append(got, part...)
		b.Done(len(part))
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes that differ from the %d there were", len(got), len(want))
	}
	if b.Holds() {
		t.Error("memory is held at the end")
	}
}

// TestThoseWhoStandStillHoldLittle has many readers keep what they were lent: the
// larger sizes run out, everybody is served, and they come back with Return.
func TestThoseWhoStandStillHoldLittle(t *testing.T) {
	const readers = MostHuge + MostLarge + 100
	all := make([]Buffer, readers)
	sizes := map[int]int{}
	for i := range all {
		all[i].size = Huge
		sizes[len(all[i].Lend())]++
		if len(all[i].Lend()) != len(all[i].Lend()) {
			t.Fatal("a second Lend is other memory")
		}
	}
	if sizes[Huge] != MostHuge || sizes[Large] != MostLarge || sizes[Small] != 100 {
		t.Errorf("lent %v", sizes)
	}
	for i := range all {
		all[i].Return()
	}
	if h, l := hugeLent.Load(), largeLent.Load(); h != 0 || l != 0 {
		t.Errorf("%d and %d count as lent when all was given back", h, l)
	}
	if got := len(all[0].Lend()); got != Huge {
		t.Errorf("then %d bytes are lent", got)
	}
	all[0].Return()
}

func BenchmarkLend(b *testing.B) {
	for name, size := range map[string]int{"small": Small - 1, "large": Large - 1, "huge": Huge} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				var m Buffer
				for pb.Next() {
					m.Lend()
					m.Done(size)
				}
			})
		})
	}
}
