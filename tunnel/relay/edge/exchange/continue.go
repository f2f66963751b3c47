package exchange

import (
	"net/http"
	"sync"
)

// word is the 100 Continue for which a request's body waits. By HTTP/1 net/http
// says it itself when the body is read first, unless it has been said, and does
// not look whether another interim answer is being written at that moment.
type word struct {
	own bool // net/http has its own

	mu      sync.Mutex // held while an interim answer is written
	said    bool       // by an interim answer, or by net/http once the body is read
	reading bool       // of the first Read: net/http may be saying it
}

// reads notes that the body is going to be read, and hasRead that it was.
func (c *word) reads() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own && !c.said {
		c.said, c.reading = true, true
	}
}

func (c *word) hasRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
}

// interim writes an interim answer, unless it says again what was said. One that
// would meet net/http's own is left out: the origin has been silent for a second
// after it was asked, and the visitor has not begun to send.
func (c *word) interim(status int, write func(int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reading || c.said && status == http.StatusContinue {
		return
	}
	c.said = c.said || status == http.StatusContinue
	write(status)
}
