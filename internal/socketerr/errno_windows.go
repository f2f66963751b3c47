package socketerr

import "golang.org/x/sys/windows"

const (
	inUse              = windows.WSAEADDRINUSE
	notAllowed         = windows.WSAEACCES
	noAddress          = windows.WSAEADDRNOTAVAIL
	refused            = windows.WSAECONNREFUSED
	networkDown        = windows.WSAENETDOWN
	networkUnreachable = windows.WSAENETUNREACH
	hostUnreachable    = windows.WSAEHOSTUNREACH
)
