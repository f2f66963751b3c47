package policies

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
)

// laid is a table with what it applies its policies to, and what it logs.
type laid struct {
	*Table
	rechecked []string
	times     int
	log       bytes.Buffer

	mu              sync.Mutex // of what follows
	served, claimed map[string]bool
	several         bool  // nodes
	fault           error // of who is asked
}

func lay() *laid {
	l := &laid{}
	l.Table = New(Config{
		Geo:       func() policy.Geo { return nil },
		Providers: []string{"company"},
		Recheck:   func(targets ...string) { l.rechecked, l.times = append(l.rechecked, targets...), l.times+1 },
		Serves: func(target string) (served bool) {
			l.with(func() { served = l.served[target] })
			return served
		},
		Claimed: func(target string) (claimed bool) {
			l.with(func() { claimed = l.claimed[target] && !l.several })
			return claimed
		},
		Ask: func(_ context.Context, target string) (claimed bool, err error) {
			l.with(func() { claimed, err = l.claimed[target], l.fault })
			return claimed, err
		},
		Log: slog.New(slog.NewTextHandler(&l.log, nil)),
	})
	return l
}

func (l *laid) with(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *laid) put(target, document string) {
	l.Set(target, store.StoredPolicy{Target: target, Document: []byte(document)}, true)
}

func (l *laid) lets(target, address string) bool {
	d, _ := l.Get(target).Explain(policy.Request{Addr: netip.MustParseAddr(address), HTTP: true, BodySize: -1}, time.Now())
	return d.Allowed
}

func TestPoliciesAreInForceAsTheyAreStored(t *testing.T) {
	l := lay()
	if l.Get("a") != nil {
		t.Error("a target without a policy has one")
	}
	l.put("a", `{"deny":["192.0.2.0/24"]}`)
	if l.lets("a", "192.0.2.1") || !l.lets("a", "198.51.100.1") {
		t.Error("the policy is not in force")
	}
	l.put("a", `{}`)
	if !l.lets("a", "192.0.2.1") {
		t.Error("the policy before it is in force yet")
	}
	if l.put("a", `{"deny":`); l.lets("a", "192.0.2.1") || l.lets("a", "2001:db8::1") || !strings.Contains(l.log.String(), "its target is closed") {
		t.Errorf("a policy that does not parse lets somebody in; the log has %s", l.log.String())
	}
	l.Set("a", store.StoredPolicy{}, false)
	l.Set("b", store.StoredPolicy{}, false)
	if l.Get("a") != nil || l.Get("b") != nil {
		t.Error("a policy that was deleted is in force yet")
	}
	l.put("known", `{"sign_in":{"provider":"company"}}`)
	l.put("unknown", `{"sign_in":{"provider":"other"}}`)
	if said := l.log.String(); strings.Count(said, "provider that is not in relay.toml") != 1 || !strings.Contains(said, "target=unknown") {
		t.Errorf("the log has %s", said)
	}
}

func TestWhatIsOpenIsHeldToThePoliciesThatDecideOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lay()
		l.put("anybody", `{}`)
		l.put("by country", `{"deny_countries":["DE"]}`)
		l.put("by hours", `{"hours":{"zone":"UTC","open":[{"days":["mon"],"from":"09:00","to":"17:00"}]}}`)
		l.put("by name", `{"sign_in":{"provider":"company","anyone":true}}`)
		if l.Moved(); !slices.Equal(l.rechecked, []string{"by country"}) {
			t.Errorf("another database: %q", l.rechecked)
		}
		l.rechecked, l.times = nil, 0
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); l.WatchHours(ctx) }()
		time.Sleep(2*hoursCheck + hoursCheck/2)
		stop()
		<-ended
		if slices.Sort(l.rechecked); !slices.Equal(l.rechecked, []string{"by hours", "by hours", "by name", "by name"}) {
			t.Errorf("in two seconds: %q", l.rechecked)
		}
		// Each time all endpoints are looked through.
		if l.times != 2 {
			t.Errorf("in two seconds what is open was gone through %d times, want 2", l.times)
		}
	})
}
