package netwatch

import (
	"encoding/binary"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// subscribe has the system tell of links, addresses, routes and wake-ups, as far
// as it does; stop ends that.
func subscribe() (sys system, stop func()) {
	network, err := routes()
	if err != nil {
		return system{}, func() {}
	}
	ch := make(chan piece, 16)
	clock, clockErr := newClock()
	var wg sync.WaitGroup
	wg.Go(func() {
		readNews(network, ch)
		clock.Close()
	})
	if clockErr == nil {
		wg.Go(func() {
			clock.read(ch)
			network.Close() // one without the other is not all there is to know
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wg.Wait()
		close(ch)
	}()
	return system{news: ch, whole: clockErr == nil}, func() { network.Close(); <-done }
}

// Groups of news that the mask of the address has no names for.
const (
	groupRules4 = 1 << (unix.RTNLGRP_IPV4_RULE - 1)
	groupRules6 = 1 << (unix.RTNLGRP_IPV6_RULE - 1)
)

// routes opens a socket for the news of the network (man 7 rtnetlink).
func routes() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	groups := uint32(unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR |
		unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_ROUTE | groupRules4 | groupRules6)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	// Of Linux 5.3; before, there are no such routes.
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.RTNLGRP_NEXTHOP)
	return os.NewFile(uintptr(fd), "netlink"), nil
}

// readNews offers what socket tells until it is closed or breaks.
func readNews(socket *os.File, ch chan piece) {
	buf := make([]byte, 64<<10)
	for {
		n, err := socket.Read(buf)
		if errors.Is(err, unix.ENOBUFS) {
			offer(ch, changed) // more news than fit: look at once
			continue
		}
		if err != nil {
			return
		}
		for _, p := range parse(buf[:n]) {
			offer(ch, p)
		}
	}
}

// parse reads netlink messages: length (4 bytes, of the machine's order), type
// (2), flags (2), sequence (4), port (4), and the body, padded to 4.
func parse(b []byte) []piece {
	var pieces []piece
	for len(b) >= unix.NLMSG_HDRLEN {
		length := int(binary.NativeEndian.Uint32(b))
		if length < unix.NLMSG_HDRLEN || length > len(b) {
			break
		}
		body := b[unix.NLMSG_HDRLEN:length]
		switch binary.NativeEndian.Uint16(b[4:]) {
		case unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_NEWADDR:
			pieces = append(pieces, changed)
		case unix.RTM_DELADDR: // family, prefix length, flags, scope, index
			if len(body) >= unix.SizeofIfAddrmsg && body[3] == unix.RT_SCOPE_UNIVERSE {
				pieces = append(pieces, removed)
			}
		case unix.RTM_NEWROUTE, unix.RTM_NEWRULE, unix.RTM_DELRULE, unix.RTM_NEWNEXTHOP, unix.RTM_DELNEXTHOP:
			pieces = append(pieces, changed)
		case unix.RTM_DELROUTE: // family, destination's and source's length, TOS, table
			if len(body) >= unix.SizeofRtMsg && body[1] == 0 && body[4] == unix.RT_TABLE_MAIN {
				pieces = append(pieces, removed)
			}
		}
		b = b[min(len(b), (length+3)&^3):]
	}
	return pieces
}
