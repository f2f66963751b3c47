//go:build !windows

package socketerr

import "syscall"

const (
	inUse              = syscall.EADDRINUSE
	notAllowed         = syscall.EACCES
	noAddress          = syscall.EADDRNOTAVAIL
	refused            = syscall.ECONNREFUSED
	networkDown        = syscall.ENETDOWN
	networkUnreachable = syscall.ENETUNREACH
	hostUnreachable    = syscall.EHOSTUNREACH
)
