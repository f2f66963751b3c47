//go:build !linux

package visitor

// ackNow does nothing: the system decides when to acknowledge.
func (v *Conn) ackNow() {}
