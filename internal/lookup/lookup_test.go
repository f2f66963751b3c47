package lookup

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const relay = "relay.example"

var (
	four  = netip.MustParseAddr("192.0.2.1")
	moved = netip.MustParseAddr("192.0.2.2")
	six   = netip.MustParseAddr("2001:db8::1")

	errNone = &net.DNSError{Err: "no such host", Name: relay, IsNotFound: true}
	errFail = &net.DNSError{Err: "server misbehaving", Name: relay, IsTemporary: true}
)

// reply is what a name server says of one family, and when. Without addresses and an
// error it says nothing.
type reply struct {
	after time.Duration
	addr  netip.Addr
	err   error
}

// server is a name server of one name.
type server struct {
	mu        sync.Mutex
	six, four reply
}

func (s *server) set(six, four reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.six, s.four = six, four
}

func (s *server) lookup(ctx context.Context, network, _ string) ([]netip.Addr, error) {
	s.mu.Lock()
	r := s.four
	if network == "ip6" {
		r = s.six
	}
	s.mu.Unlock()
	var answer <-chan time.Time
	if r.err != nil || r.addr.IsValid() {
		answer = time.After(r.after)
	}
	select {
	case <-answer:
	case <-ctx.Done():
		return nil, &net.DNSError{Err: "i/o timeout", Name: relay, IsTimeout: true}
	}
	if r.err != nil {
		return nil, r.err
	}
	return []netip.Addr{r.addr}, nil
}

// asked looks relay up and returns how long that took.
func asked(t *testing.T, r *Resolver) ([]netip.Addr, time.Duration, error) {
	t.Helper()
	begin := time.Now()
	addrs, err := r.LookupNetIP(t.Context(), "ip", relay)
	return addrs, time.Since(begin), err
}

func TestOneFamilyIsEnough(t *testing.T) {
	const quick = 10 * time.Millisecond
	for name, test := range map[string]struct {
		six, four reply
		want      []netip.Addr
		took      time.Duration
	}{
		"both":                         {reply{quick, six, nil}, reply{2 * quick, four, nil}, []netip.Addr{six, four}, 2 * quick},
		"no IPv6":                      {reply{2 * quick, netip.Addr{}, errNone}, reply{quick, four, nil}, []netip.Addr{four}, 2 * quick},
		"no IPv4":                      {reply{quick, six, nil}, reply{quick, netip.Addr{}, errNone}, []netip.Addr{six}, quick},
		"IPv6 is a little later":       {reply{quick + later/2, six, nil}, reply{quick, four, nil}, []netip.Addr{six, four}, quick + later/2},
		"nothing is said of IPv6":      {reply{}, reply{quick, four, nil}, []netip.Addr{four}, quick + later},
		"nothing is said of IPv4":      {reply{quick, six, nil}, reply{}, []netip.Addr{six}, quick + later},
		"IPv6 fails":                   {reply{quick, netip.Addr{}, errFail}, reply{2 * quick, four, nil}, []netip.Addr{four}, 2 * quick},
		"IPv6 fails after some time":   {reply{5 * time.Second, netip.Addr{}, errFail}, reply{quick, four, nil}, []netip.Addr{four}, quick + later},
		"the hosts file has IPv4 only": {reply{0, netip.Addr{}, &net.AddrError{Err: "no suitable address found", Addr: relay}}, reply{0, four, nil}, []netip.Addr{four}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{six: test.six, four: test.four}
				addrs, took, err := asked(t, &Resolver{Lookup: s.lookup})
				if err != nil || !slices.Equal(addrs, test.want) || took != test.took {
					t.Errorf("got %v, %v after %v", addrs, err, took)
				}
				time.Sleep(limit) // of what is still asked
			})
		})
	}
}

func TestAddressesOfBeforeOutliveTheNameServer(t *testing.T) {
	for name, test := range map[string]struct {
		six, four reply
		took      time.Duration
		says      string
	}{
		"nothing is said":  {reply{}, reply{}, patience, "the name server has not answered"},
		"failures":         {reply{0, netip.Addr{}, errFail}, reply{time.Millisecond, netip.Addr{}, errFail}, time.Millisecond, "server misbehaving"},
		"a failure":        {reply{0, netip.Addr{}, errFail}, reply{}, patience, "the name server has not answered"},
		"no such name":     {reply{0, netip.Addr{}, errNone}, reply{0, netip.Addr{}, errNone}, 0, "no such host"},
		"no way out":       {reply{0, netip.Addr{}, errors.New("no route")}, reply{0, netip.Addr{}, errors.New("no route")}, 0, "no route"},
		"none of one only": {reply{0, netip.Addr{}, errNone}, reply{0, netip.Addr{}, errFail}, 0, "server misbehaving"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{six: reply{0, six, nil}, four: reply{0, four, nil}}
				r := &Resolver{Lookup: s.lookup}
				asked(t, r)
				s.set(test.six, test.four)
				addrs, took, err := asked(t, r)
				var dns *net.DNSError
				if !errors.As(err, &dns) || dns.Err != test.says || !slices.Equal(addrs, []netip.Addr{six, four}) || took != test.took {
					t.Errorf("got %v, %v after %v", addrs, err, took)
				}
				time.Sleep(limit) // of what is still asked
			})
		})
	}
}

// A family that fails keeps its addresses beside those that are found.
func TestAFamilyThatFailsKeepsItsAddresses(t *testing.T) {
	for name, fails := range map[string]reply{"with an error": {0, netip.Addr{}, errFail}, "in silence": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{six: reply{0, six, nil}, four: reply{0, four, nil}}
				r := &Resolver{Lookup: s.lookup}
				asked(t, r)
				s.set(fails, reply{0, moved, nil})
				if addrs, _, err := asked(t, r); err != nil || !slices.Equal(addrs, []netip.Addr{six, moved}) {
					t.Errorf("got %v, %v, want %v and %v", addrs, err, six, moved)
				}
				time.Sleep(limit) // of what is still asked
			})
		})
	}
}

// A name of one family alone is waited for no longer than one of both.
func TestAddressOfBeforeIsEnoughInEitherFamily(t *testing.T) {
	none := reply{0, netip.Addr{}, errNone}
	for name, test := range map[string]struct {
		six, four reply
		want      netip.Addr
	}{"IPv6": {reply{0, six, nil}, none, six}, "IPv4": {none, reply{0, four, nil}, four}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{six: test.six, four: test.four}
				r := &Resolver{Lookup: s.lookup}
				asked(t, r)
				s.set(reply{}, reply{})
				if addrs, took, err := asked(t, r); err == nil || !slices.Equal(addrs, []netip.Addr{test.want}) || took != patience {
					t.Errorf("got %v, %v after %v, want %v after %v", addrs, err, took, test.want, patience)
				}
				time.Sleep(limit) // of what is still asked
			})
		})
	}
}

// One that the name has no more is not tried beside what it has now.
func TestAddressThatIsGoneIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{six: reply{0, six, nil}, four: reply{0, four, nil}}
		r := &Resolver{Lookup: s.lookup}
		asked(t, r)
		s.set(reply{0, netip.Addr{}, errNone}, reply{0, moved, nil})
		if addrs, _, err := asked(t, r); err != nil || !slices.Equal(addrs, []netip.Addr{moved}) {
			t.Errorf("got %v, %v", addrs, err)
		}
	})
}

func TestForgetfulHasNoAddressOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{six: reply{}, four: reply{0, four, nil}}
		r := &Resolver{Lookup: s.lookup, Forgetful: true}
		if addrs, took, err := asked(t, r); err != nil || !slices.Equal(addrs, []netip.Addr{four}) || took != later {
			t.Errorf("at first, got %v, %v after %v", addrs, err, took)
		}
		s.set(reply{}, reply{2 * patience, netip.Addr{}, errFail})
		if addrs, took, err := asked(t, r); err == nil || len(addrs) > 0 || took != limit {
			t.Errorf("then, got %v, %v after %v", addrs, err, took)
		}
	})
}

// Who cannot use a late answer leaves no question behind: strangers make a Forgetful
// one ask as often as they like.
func TestForgetfulAsksNoLongerThanSomebodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails if a question outlives it
		r := &Resolver{Lookup: new(server).lookup, Forgetful: true}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if addrs, err := r.LookupNetIP(ctx, "ip", relay); len(addrs) > 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v", addrs, err)
		}
		synctest.Wait()
	})
}

// An answer that came too late for who asked is there for who asks next.
func TestLateAnswerIsOfUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{six: reply{}, four: reply{5 * time.Second, four, nil}}
		r := &Resolver{Lookup: s.lookup}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		addrs, err := r.LookupNetIP(ctx, "ip", relay)
		if len(addrs) > 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at first, got %v, %v", addrs, err)
		}
		time.Sleep(2 * time.Second)
		addrs, took, err := asked(t, r)
		var dns *net.DNSError
		if !errors.As(err, &dns) || !slices.Equal(addrs, []netip.Addr{four}) || took != patience {
			t.Errorf("then, got %v, %v after %v", addrs, err, took)
		}
		time.Sleep(limit)
	})
}

func TestNameThatNeverHadAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{six: reply{0, netip.Addr{}, errNone}, four: reply{0, netip.Addr{}, errNone}}
		addrs, _, err := asked(t, &Resolver{Lookup: s.lookup})
		var dns *net.DNSError
		if len(addrs) > 0 || !errors.As(err, &dns) || !dns.IsNotFound {
			t.Errorf("got %v, %v", addrs, err)
		}
	})
}

func TestNamesAreBounded(t *testing.T) {
	r := &Resolver{Lookup: func(context.Context, string, string) ([]netip.Addr, error) { return []netip.Addr{four}, nil }}
	for i := range 3 * most {
		if _, err := r.LookupNetIP(t.Context(), "ip", strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.names) != most {
		t.Errorf("%d names are kept", len(r.names))
	}
}

// The system's resolver finds localhost, which every hosts file has.
func TestSystemIsAsked(t *testing.T) {
	addrs, err := new(Resolver).LookupNetIP(t.Context(), "ip", "localhost")
	if err != nil || !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return a.Unmap().IsLoopback() }) {
		t.Errorf("got %v, %v", addrs, err)
	}
}
