//go:build !linux

package sockio

// half is what one direction needs; nothing here.
type half struct{}

// TryWrite takes nothing here.
func (c *Conn) TryWrite([]byte) int { return 0 }

// setUp does nothing here.
func (d *Datagrams) setUp() {}

// setUp leaves all to the net package: here every system call is announced.
func (c *Conn) setUp() {}
