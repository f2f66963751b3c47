package certs

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestRepairedNameNeedNotWait makes a name fail until its pause is an hour, and then lead
// elsewhere.
func TestRepairedNameNeedNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := newStateACME(t, false)
		var addrs []netip.Addr // none: there is no such name
		a.cfg.Lookup = func(_ context.Context, _, name string) ([]netip.Addr, error) {
			if len(addrs) == 0 {
				return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
			}
			return append([]netip.Addr(nil), addrs...), nil
		}
		var asked int
		fails := errors.New("the authority reached nobody")
		a.get = func(string) error { asked++; return fails }
		want := func(after time.Duration, n int) {
			t.Helper()
			time.Sleep(after)
			a.Want("www.shop.test")
			synctest.Wait()
			if asked != n {
				t.Fatalf("the authority was asked %d times, want %d", asked, n)
			}
		}
		want(0, 1)
		for n, pause := 2, time.Minute; n <= 7; n, pause = n+1, 2*pause {
			want(pause-time.Second, n-1)
			want(time.Second, n)
		}
		// The pause is an hour now.
		want(20*time.Minute, 7)
		addrs = []netip.Addr{netip.MustParseAddr("192.0.2.7")}
		want(time.Minute, 8)
		want(5*time.Minute, 8)
		addrs = []netip.Addr{netip.MustParseAddr("192.0.2.8"), netip.MustParseAddr("192.0.2.9")}
		want(time.Minute, 8) // too often
		want(3*time.Minute, 9)
		addrs[0], addrs[1] = addrs[1], addrs[0]
		want(20*time.Minute, 9) // in another order only
		addrs = nil
		want(time.Minute, 9) // it leads nowhere
		addrs, fails = []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		want(time.Minute, 10)
		if s := a.State(t.Context(), "www.shop.test"); s.Err != nil || s.Trying {
			t.Errorf("got %+v", s)
		}
	})
}

// TestNameOfManyAddressesIsNotAskedForTooOften makes the DNS return other addresses of a
// name with every query, none of which lead to the relay.
func TestNameOfManyAddressesIsNotAskedForTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 5 // failures an hour that Let's Encrypt takes of one name
		a, _ := newStateACME(t, false)
		var looked byte
		a.cfg.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
			looked++
			return []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, looked}), netip.AddrFrom4([4]byte{192, 0, 2, looked + 1})}, nil
		}
		var asked []time.Time
		a.get = func(string) error {
			asked = append(asked, time.Now())
			return errors.New("the authority reached nobody")
		}
		for begin := time.Now(); time.Since(begin) < 24*time.Hour; time.Sleep(time.Minute) {
			a.Want("www.shop.test")
			synctest.Wait()
		}
		for i, at := range asked {
			if n := i + most; n < len(asked) && i >= most && asked[n].Sub(at) < time.Hour {
				t.Errorf("%d tries within %v of the first day's %v", most+1, asked[n].Sub(at), at.Sub(asked[0]))
			}
		}
		if len(asked) < 24 {
			t.Errorf("%d tries in a day", len(asked))
		}
	})
}

// TestNameByDNSWaits checks that the pause of a name that is proved by DNS does not
// depend on where it leads.
func TestNameByDNSWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := newStateACME(t, true)
		a.cfg.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
			t.Error("looked where a wildcard leads")
			return nil, nil
		}
		var asked int
		a.get = func(string) error { asked++; return errors.New("no record") }
		a.Want("shop.relay.test")
		synctest.Wait()
		time.Sleep(time.Minute - time.Second)
		a.Want("shop.relay.test")
		synctest.Wait()
		if asked != 1 {
			t.Errorf("asked %d times, want once", asked)
		}
	})
}
