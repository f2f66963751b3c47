package origin

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Development servers often listen at ::1 alone, and systems often name
// 127.0.0.1 alone.
func TestLocalhostIsBothLoopbacks(t *testing.T) {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6 loopback: %v", err)
	}
	defer ln.Close()
	s := Service{Host: "localhost", Port: ln.Addr().(*net.TCPAddr).Port}
	four, mapped := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1")
	for name, told := range map[string][]netip.Addr{"one family": {four}, "as IPv6": {mapped}, "nothing": nil, "both": {netip.IPv6Loopback(), four}} {
		d := &Dialer{Timeout: 5 * time.Second, Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			if told == nil {
				return nil, errors.New("no such host")
			}
			return told, nil
		}}
		addrs, err := d.resolve(t.Context(), s)
		if err != nil || len(addrs) != 2 || addrs[0].Addr() != four {
			t.Errorf("%s: got %v, %v, want 127.0.0.1 and then ::1", name, addrs, err)
		}
		c, err := d.Dial(t.Context(), s, nil, true)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.Close()
	}
}

// TestAServiceAtTheOtherLoopbackIsTold: whoever started one is sure that it runs.
func TestAServiceAtTheOtherLoopbackIsTold(t *testing.T) {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6 loopback: %v", err)
	}
	defer ln.Close()
	port := ln.Addr().(*net.TCPAddr).Port
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	own := Guard{Refuse: func(ip netip.Addr, _ int) error {
		if ip == netip.IPv6Loopback() {
			return errors.New("adit's own page listens there")
		}
		return nil
	}}
	for _, c := range []struct {
		guard Guard
		want  string
	}{
		{Guard{}, "nothing listens at the local address " + at + ", but something does at " + ln.Addr().String() + "; use localhost instead of 127.0.0.1"},
		{own, "nothing listens at the local address " + at},
	} {
		d := &Dialer{Timeout: 5 * time.Second, Guard: c.guard}
		if _, err := d.Dial(t.Context(), Service{Host: "127.0.0.1", Port: port}, nil, false); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestBothLoopbacksOfLocalhostAreGuarded(t *testing.T) {
	d := &Dialer{
		Timeout: 5 * time.Second,
		Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		Guard: Guard{Refuse: func(ip netip.Addr, _ int) error {
			if ip == netip.IPv6Loopback() {
				return errors.New("adit's own page listens there")
			}
			return nil
		}},
	}
	s := Service{Host: "localhost", Port: listen(t, func(net.Conn) {})}
	if _, err := d.Dial(t.Context(), s, nil, true); err == nil || !strings.Contains(err.Error(), "adit's own") {
		t.Errorf("got %v, want that the second address is guarded, too", err)
	}
}
