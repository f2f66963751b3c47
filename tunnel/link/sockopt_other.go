//go:build !linux

package link

import "net"

// tuneTCP does nothing where congestion control is not ours to choose.
func tuneTCP(net.Conn) {}
