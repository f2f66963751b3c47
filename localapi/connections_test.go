package localapi

import (
	"net"
	"net/http"
	"testing"
)

// TestWhichConnectionMakesRoom: the oldest on which nobody is served, or else the new one.
func TestWhichConnectionMakesRoom(t *testing.T) {
	c := newConnections(3)
	connect := func() net.Conn {
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		c.changed(near, http.StateNew)
		return near
	}
	isOpen := func(conn net.Conn) bool { _, known := c.conns[conn]; return known }
	first, second, third := connect(), connect(), connect()
	c.serving(first)
	fourth := connect()
	if isOpen(second) || !isOpen(first) || !isOpen(third) || !isOpen(fourth) {
		t.Fatal("it is not the oldest on which nobody is served")
	}
	if _, err := second.Write([]byte("x")); err == nil {
		t.Error("what made room is not closed")
	}
	c.serving(third)
	c.serving(fourth)
	if fifth := connect(); isOpen(fifth) || c.open() != 3 {
		t.Error("a new one is let in beside those that are served")
	}
	c.changed(third, http.StateIdle)
	sixth := connect()
	if isOpen(third) || !isOpen(sixth) {
		t.Error("one that is served no more does not make room")
	}
	c.changed(first, http.StateClosed)
	if seventh := connect(); !isOpen(fourth) || !isOpen(sixth) || !isOpen(seventh) {
		t.Error("one that is closed has left no room")
	}
}
