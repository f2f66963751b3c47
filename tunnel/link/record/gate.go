package record

import (
	"runtime"
	"sync"
)

// beginsPerProcessor is how many handshakes per processor may compute their first answer at once.
// This takes a fraction of a millisecond if processors are not short.
const beginsPerProcessor = 8

// gate holds back most handshakes until those that have begun have had their turn. If thousands
// arrive at once and processors are short, all would be in progress together and finish after their
// clients had given up, who would then try again. A client that is not admitted repeats its message
// by itself.
type gate chan struct{}

func newGate() gate { return make(gate, beginsPerProcessor*runtime.GOMAXPROCS(0)) }

// enter reports whether a handshake may begin. The first call of leave says that its first answer
// has been sent.
func (g gate) enter() (leave func(), ok bool) {
	select {
	case g <- struct{}{}:
		return sync.OnceFunc(func() { <-g }), true
	default:
		return nil, false
	}
}
