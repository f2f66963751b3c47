package record

import (
	"runtime"
	"sync"
)

// beginsPerProcessor is how many handshakes may compute their first answer at once,
// for each processor. It takes them a fraction of a millisecond where processors are
// not short.
const beginsPerProcessor = 8

// gate keeps most handshakes from beginning before those that have begun have had
// their turn. Where thousands come at once and processors are short, all would be
// under way together, and end after their clients had given up, who then come
// again. A client that is not let in repeats its question by itself.
type gate chan struct{}

func newGate() gate { return make(gate, beginsPerProcessor*runtime.GOMAXPROCS(0)) }

// enter reports whether a handshake may begin. leave says, at its first call, that
// its first answer is there.
func (g gate) enter() (leave func(), ok bool) {
	select {
	case g <- struct{}{}:
		return sync.OnceFunc(func() { <-g }), true
	default:
		return nil, false
	}
}
