//go:build !linux && !darwin

package link

import "net"

// limitUnsent does nothing where the system fits its send buffers to the path,
// as Windows does, or has no bound for what is unsent.
func limitUnsent(net.Conn, int) {}
