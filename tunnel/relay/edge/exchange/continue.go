package exchange

import (
	"net/http"
	"sync"
)

// word coordinates the 100 Continue that a request's body waits for. Over HTTP/1, net/http
// sends it when the body is first read, unless one has been sent, and does not check whether
// another interim answer is being written at that moment.
type word struct {
	own bool // net/http sends its own

	mu      sync.Mutex // held while an interim answer is being written
	said    bool       // sent as an interim answer, or by net/http once the body is read
	reading bool       // the first Read is in progress: net/http may be sending it
}

// reads notes that the body is about to be read, and hasRead that it has been read.
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

// interim writes an interim answer, unless it repeats one that was sent. One that would
// collide with net/http's own is left out: by then the origin has been silent for a second
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
