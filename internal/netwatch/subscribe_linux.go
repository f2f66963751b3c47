package netwatch

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// subscribe has the system's news of links, addresses and routes sent (man 7
// rtnetlink); stop ends that. Where it cannot be had, the channel is nil.
func subscribe() (news <-chan piece, stop func()) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, func() {}
	}
	groups := uint32(unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR | unix.RTMGRP_IPV4_ROUTE | unix.RTMGRP_IPV6_ROUTE)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return nil, func() {}
	}
	socket := os.NewFile(uintptr(fd), "netlink")
	ch := make(chan piece, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(ch)
		buf := make([]byte, 64<<10)
		for {
			n, err := socket.Read(buf)
			if err != nil {
				if errors.Is(err, unix.ENOBUFS) {
					offer(ch, changed) // more news than fit: look at once
					continue
				}
				return
			}
			for _, p := range parse(buf[:n]) {
				offer(ch, p)
			}
		}
	}()
	return ch, func() { socket.Close(); <-done }
}

func offer(ch chan piece, p piece) {
	select {
	case ch <- p:
	default: // as many are waiting, and one look answers all
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
		case unix.RTM_NEWROUTE: // family, destination's and source's length, TOS, table
			pieces = append(pieces, changed)
		case unix.RTM_DELROUTE:
			if len(body) >= unix.SizeofRtMsg && body[1] == 0 && body[4] == unix.RT_TABLE_MAIN {
				pieces = append(pieces, removed)
			}
		}
		b = b[min(len(b), (length+3)&^3):]
	}
	return pieces
}
