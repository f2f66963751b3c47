package crowd

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func block(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
}

// TestTheMostCrowdedBlockGivesWay fills all places, most from one block.
func TestTheMostCrowdedBlockGivesWay(t *testing.T) {
	c := Crowd{PerBlock: 3, Most: 5}
	var cut []string
	leave := map[string]func(){}
	enter := func(name string, from int, want bool) {
		t.Helper()
		l, ok := c.Enter(block(from), func() { cut = append(cut, name) })
		if ok != want {
			t.Errorf("%s: let in: %v, want %v", name, ok, want)
		}
		leave[name] = l
	}
	enter("a1", 1, true)
	enter("b1", 2, true)
	enter("b2", 2, true)
	enter("b3", 2, true)
	enter("b4", 2, false)
	enter("a2", 1, true)
	enter("c1", 3, true) // for b1
	enter("d1", 4, true) // a and b have two each: for a1, who came first
	enter("e1", 5, true) // for b2
	enter("f1", 6, true) // all have one: for b3
	enter("g1", 7, true) // for a2
	if want := []string{"b1", "a1", "b2", "b3", "a2"}; !slices.Equal(cut, want) {
		t.Errorf("cut %q, want %q", cut, want)
	}
	leave["b1"]() // has no place to give back
	leave["c1"]()
	leave["c1"]()
	if c.Len() != 4 || c.Cut() != 5 {
		t.Errorf("%d places are taken and %d were cut, want 4 and 5", c.Len(), c.Cut())
	}
	for _, l := range leave {
		l()
	}
	if c.Len() != 0 || len(c.blocks) != 0 {
		t.Errorf("%d places and %d blocks are left", c.Len(), len(c.blocks))
	}
}

// TestWhoSaysWhoItIsGetsIn floods from more addresses than there are places: one
// who comes, and says who it is before as many others have come, is not cut.
func TestWhoSaysWhoItIsGetsIn(t *testing.T) {
	c := Crowd{PerBlock: 4, Most: 100}
	for i := range 1000 {
		c.Enter(block(i), func() {})
	}
	for i := range 100 {
		lost := false
		leave, ok := c.Enter(block(1<<20), func() { lost = true })
		for k := range 99 {
			c.Enter(block(2000+100*i+k), func() {})
		}
		if !ok || lost {
			t.Fatalf("the agent got in: %v, and lost its place: %v", ok, lost)
		}
		leave()
	}
}

// TestACrowdThatComesBackAtOnceIsNotCut has more come at once than there are
// places, each from its own block: those who were first keep theirs for a while,
// and those who hold many places do not.
func TestACrowdThatComesBackAtOnceIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Crowd{PerBlock: 8, Most: 50, Grace: 3 * time.Second}
		cut := map[int]int{}
		enter := func(from int) bool {
			_, ok := c.Enter(block(from), func() { cut[from]++ })
			return ok
		}
		for range 3 {
			enter(0)
		}
		for i := range 47 {
			enter(1 + i)
		}
		for i := range 3 { // for one of the block with three, and then two
			if got := enter(100 + i); got != (i < 2) {
				t.Errorf("newcomer %d got in: %v", i, got)
			}
		}
		if cut[0] != 2 || len(cut) != 1 {
			t.Errorf("cut %v, want two of the block of three", cut)
		}
		time.Sleep(3 * time.Second)
		if !enter(200) || len(cut) != 1 || cut[0] != 3 {
			t.Errorf("after the time for it nobody gave way: %v", cut)
		}
	})
}

func TestManyEnterAtOnce(t *testing.T) {
	c := Crowd{PerBlock: 8, Most: 16}
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for range 200 {
				leave, _ := c.Enter(block(i%6), func() {})
				leave()
			}
		})
	}
	all.Wait()
	if c.Len() != 0 {
		t.Error(fmt.Sprint(c.Len(), " places are left"))
	}
}
