package localapi

import (
	"net"
	"net/http"
	"sync"
)

// connections limits the open connections. If there is one too many, the oldest one without an
// active handler is closed, so that a client that holds many silent connections cannot keep others
// out.
type connections struct {
	most int

	mu    sync.Mutex
	next  uint64
	conns map[net.Conn]*connection
}

type connection struct {
	born    uint64
	serving bool
}

func newConnections(most int) *connections {
	return &connections{most: most, conns: make(map[net.Conn]*connection)}
}

// changed is the server's ConnState hook.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	var evicted net.Conn
	c.mu.Lock()
	switch state {
	case http.StateNew:
		c.next++
		c.conns[conn] = &connection{born: c.next}
		if len(c.conns) > c.most {
			evicted = c.oldest()
			delete(c.conns, evicted)
		}
	case http.StateIdle:
		if entry := c.conns[conn]; entry != nil {
			entry.serving = false
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.conns, conn)
	}
	c.mu.Unlock()
	if evicted != nil {
		evicted.Close()
	}
}

// oldest returns the connection to close first: the oldest without a handler, or the newest if all
// others have active handlers.
func (c *connections) oldest() net.Conn {
	var idle, newest net.Conn
	for conn, entry := range c.conns {
		if !entry.serving && (idle == nil || entry.born < c.conns[idle].born) {
			idle = conn
		}
		if newest == nil || entry.born > c.conns[newest].born {
			newest = conn
		}
	}
	if idle != nil {
		return idle
	}
	return newest
}

// serving records that a handler works on conn.
func (c *connections) serving(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry := c.conns[conn]; entry != nil {
		entry.serving = true
	}
}

func (c *connections) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}
