//go:build !linux

package link

import "net"

// tuneTCP asks for BBR congestion control and a short queue where the system has them.
func tuneTCP(net.Conn) {}
