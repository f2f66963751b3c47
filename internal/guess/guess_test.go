package guess

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestTriesRunOutAndComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		for range AtOnce {
			if !p.Take("a") {
				t.Fatal("refused too early")
			}
		}
		if p.Take("a") {
			t.Error("not refused")
		}
		if !p.Take("b") {
			t.Error("refused for another's tries")
		}
		time.Sleep(Again)
		if !p.Take("a") || p.Take("a") {
			t.Error("want one try more")
		}
		p.Right("a")
		if !p.Take("a") || p.Take("a") {
			t.Error("want the right one back, and no more")
		}
	})
}

func TestAFloodOfKeysTakesBoundedMemory(t *testing.T) {
	var p Pace
	for i := range 2*maxKeys + 1 {
		p.Take(fmt.Sprint(i))
		if len(p.tries) > maxKeys {
			t.Fatalf("%d keys are remembered", len(p.tries))
		}
	}
	p.Take("right")
	p.Right("right")
	if p.tries["right"] != nil {
		t.Error("who was right is remembered")
	}
}
