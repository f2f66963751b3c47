//go:build !linux

package sockio

import "adit/internal/lend"

// half is what one direction needs; nothing here.
type half struct{}

// LearnOf does nothing: on these systems it is not possible to choose when to acknowledge.
func (c *Conn) LearnOf(*Peer) {}

// ReadLent reads into memory that l lends, and holds it while it waits.
func (c *Conn) ReadLent(l *lend.Buffer) (int, error) { return c.TCPConn.Read(l.Lend()) }

// TryWrite writes nothing on these systems.
func (c *Conn) TryWrite([]byte) int { return 0 }

// setUp leaves all to the net package: here every system call is announced.
func (c *Conn) setUp() {}

// TryRead reads nothing on these systems.
func (c *Conn) TryRead([]byte) (int, error) { return 0, nil }
