//go:build !linux

package sockio

// half is what one direction needs; nothing here.
type half struct{}

// setUp leaves all to the net package: here every system call is announced.
func (c *Conn) setUp() {}
