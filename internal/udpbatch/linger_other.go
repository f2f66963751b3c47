//go:build !linux

package udpbatch

// Passed tells that packets of udp tunnels have passed. Linux alone has readers of
// UDP sockets linger for it.
func Passed(int) {}
