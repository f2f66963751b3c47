package lend

import (
	"sync"
	"testing"
)

// Nobody has what somebody else has: the race detector, too, tells if the one
// that had memory before is not before the one that has it next.
func TestPoolLendsToOneAtATime(t *testing.T) {
	made := 0
	var making sync.Mutex
	pool := Pool[[]int]{New: func() *[]int {
		making.Lock()
		defer making.Unlock()
		made++
		s := make([]int, 1)
		return &s
	}}
	var using sync.WaitGroup
	for i := range 100 { // more than are kept
		using.Go(func() {
			for range 100 {
				m := pool.Get()
				(*m)[0] = i
				for range 10 {
					if got := (*m)[0]; got != i {
						t.Errorf("got memory of %d, want that of %d", got, i)
					}
				}
				pool.Put(m)
			}
		})
	}
	using.Wait()
	if made == 0 || made == 100*100 {
		t.Errorf("%d were made, want some, and some used again", made)
	}
}

func TestPoolMakesWhatNobodySaysHow(t *testing.T) {
	var pool Pool[[Large]byte]
	m := pool.Get()
	m[0] = 7
	pool.Put(m)
	if m := pool.Get(); m == nil {
		t.Error("got nothing")
	}
}
