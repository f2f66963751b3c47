package netwatch

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestClockTellsOfJumps(t *testing.T) {
	answers := []error{unix.ECANCELED, &os.PathError{Op: "read", Err: unix.ECANCELED}, nil, os.ErrClosed}
	ch, set := make(chan piece, 16), 0
	err := jumps(func([]byte) (int, error) {
		answer := answers[0]
		answers = answers[1:]
		return 8, answer
	}, func() error { set++; return nil }, ch)
	if !errors.Is(err, os.ErrClosed) || len(ch) != 3 || set != 3 {
		t.Errorf("got %v, %d pieces, set %d times; want the closing, 3 and 3", err, len(ch), set)
	}
}

// TestClockIsTheSystems has a real timer come due, which is read as a jump is.
func TestClockIsTheSystems(t *testing.T) {
	c, err := newClock()
	if err != nil {
		t.Fatal(err)
	}
	ch, done := make(chan piece, 16), make(chan struct{})
	go func() { defer close(done); c.read(ch) }()
	if err := c.set(-time.Second); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ch:
	case <-time.After(20 * time.Second):
		t.Error("a timer that was due was not read")
	}
	c.Close()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("reading goes on after closing")
	}
}
