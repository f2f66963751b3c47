//go:build darwin || freebsd

package netwatch

import (
	"os"

	"golang.org/x/net/route"
	"golang.org/x/sys/unix"
)

// subscribe has the system tell of links, addresses and routes (man 4 route);
// stop ends that. Of wake-ups it does not tell.
func subscribe() (sys system, stop func()) {
	fd, err := unix.Socket(unix.AF_ROUTE, unix.SOCK_RAW, unix.AF_UNSPEC)
	if err != nil {
		return system{}, func() {}
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return system{}, func() {}
	}
	socket := os.NewFile(uintptr(fd), "route")
	ch := make(chan piece, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(ch)
		buf := make([]byte, 64<<10)
		for {
			n, err := socket.Read(buf)
			if err != nil {
				return
			}
			if matters(buf[:n]) {
				offer(ch, changed)
			}
		}
	}()
	return system{news: ch}, func() { socket.Close(); <-done }
}

// matters reports whether routing messages may be of another place in the
// network. Routes to single hosts are made and dropped all the time.
func matters(b []byte) bool {
	messages, err := route.ParseRIB(route.RIBTypeRoute, b)
	if err != nil {
		return true // a look costs little
	}
	for _, m := range messages {
		switch m := m.(type) {
		case *route.RouteMessage:
			change := m.Type == unix.RTM_ADD || m.Type == unix.RTM_DELETE || m.Type == unix.RTM_CHANGE
			if change && m.Flags&unix.RTF_HOST == 0 {
				return true
			}
		case *route.InterfaceMessage, *route.InterfaceAddrMessage:
			return true
		}
	}
	return false
}
