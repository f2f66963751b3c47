package main

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestATurnLastsAsLongAsItSays has a load that knows when it was over, as that of
// datagrams does, which waits for those that are late.
func TestATurnLastsAsLongAsItSays(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: &exec.Cmd{Process: self}}
	l := &lab{relay: p, agent: p}
	all, err := alternate([2]*lab{l, l}, func(i int, begin func()) (float64, time.Duration, error) {
		begin()
		return 10, time.Duration(i) * time.Hour, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := range turns {
		if s := all[0][n].seconds; s <= 0 || s >= 3600 {
			t.Errorf("a turn that does not say how long it took: got %v s, want what passed", s)
		}
		if s := all[1][n].seconds; s != 3600 {
			t.Errorf("a turn that says one hour: got %v s", s)
		}
	}
}
