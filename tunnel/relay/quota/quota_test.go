package quota

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/scope"
)

func TestStateOfAMonth(t *testing.T) {
	for name, c := range map[string]struct {
		scope scope.Scope
		total int64
		want  string
	}{
		"no quota":      {scope.Scope{}, 1 << 60, OK},
		"some":          {scope.Scope{Monthly: 100}, 79, OK},
		"near":          {scope.Scope{Monthly: 100}, 80, Near},
		"all but one":   {scope.Scope{Monthly: 100}, 99, Near},
		"over":          {scope.Scope{Monthly: 100}, 100, Over},
		"over, slowed":  {scope.Scope{Monthly: 100, OverQuota: scope.OverThrottle}, 100, Throttled},
		"over, stopped": {scope.Scope{Monthly: 100, OverQuota: scope.OverStop}, 100, Stopped},
	} {
		if got := State(c.scope, c.total); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// month is what clients moved in one month. A write may go unconfirmed.
type month struct {
	usage   map[string]store.Usage
	scopes  map[string]scope.Scope
	away    bool
	asked   []string // whose bytes were to be added
	bounded map[*shape.Account]int
	stopped map[*shape.Account]bool
}

func newMonth() *month {
	return &month{
		usage: map[string]store.Usage{}, scopes: map[string]scope.Scope{}, bounded: map[*shape.Account]int{}, stopped: map[*shape.Account]bool{},
	}
}

func (m *month) accounts() *Accounts {
	return New(Config{Clients: m, Usages: m, Edge: m, Log: slog.New(slog.DiscardHandler)})
}

func (m *month) ByID(id string) (store.Client, bool) {
	scope, ok := m.scopes[id]
	return store.Client{ID: id, Name: id, Scope: scope}, ok
}

func (m *month) Get(id, _ string) store.Usage { return m.usage[id] }

func (m *month) Counted(string, string) (store.Counted, bool) { return store.Counted{}, false }

func (m *month) Add(_ context.Context, id, _ string, _ store.Tally) (store.Usage, error) {
	m.asked = append(m.asked, id)
	if m.away {
		return store.Usage{}, context.DeadlineExceeded
	}
	return m.usage[id], nil
}

func (m *month) Bound(a *shape.Account)           { m.bounded[a]++ }
func (m *month) Stop(a *shape.Account, stop bool) { m.stopped[a] = stop }

func TestClientsAreHeldToWhatTheyMayMove(t *testing.T) {
	m := newMonth()
	m.scopes["stops"] = scope.Scope{Monthly: 100, OverQuota: scope.OverStop}
	m.scopes["slows"] = scope.Scope{Monthly: 100, OverQuota: scope.OverThrottle, Bandwidth: 5000, Throttle: 50}
	a := m.accounts()
	stops, slows := a.Of("stops"), a.Of("slows")
	if a.Of("stops") != stops || !a.Has("stops") || a.Has("nobody") {
		t.Error("a client has not one account")
	}
	if m.stopped[stops] || slows.In.Rate() != 5000 || slows.Out.Rate() != 5000 || m.bounded[slows] != 1 {
		t.Errorf("at first: stopped %v, rate %v, bound %d times", m.stopped[stops], slows.In.Rate(), m.bounded[slows])
	}
	m.usage["stops"], m.usage["slows"] = store.Usage{In: 60, Out: 40}, store.Usage{Out: 100}
	a.Settle(t.Context())
	if !m.stopped[stops] || slows.In.Rate() != 50 || m.bounded[slows] != 2 {
		t.Errorf("over the quota: stopped %v, rate %v, bound %d times", m.stopped[stops], slows.In.Rate(), m.bounded[slows])
	}
	m.scopes["stops"] = scope.Scope{Monthly: 1000, OverQuota: scope.OverStop}
	if a.Apply("stops"); m.stopped[stops] {
		t.Error("the client is held to a quota that it has no more")
	}
	if len(m.asked) > 0 {
		t.Errorf("nothing was moved, and %q were counted", m.asked)
	}
	a.Forget("slows")
	if a.Has("slows") || a.Of("slows") == slows {
		t.Error("the account of a client that is no longer stays")
	}
}

func TestThrottledBandwidth(t *testing.T) {
	for name, c := range map[string]struct{ bandwidth, throttle, want int64 }{
		"of a client without a bandwidth": {0, 50, 50},
		"above the client's":              {40, 50, 40},
		"below the client's":              {5000, 50, 50},
		"that nobody has chosen":          {0, 0, scope.DefaultThrottle},
	} {
		m := newMonth()
		m.scopes["shop"] = scope.Scope{Monthly: 100, OverQuota: scope.OverThrottle, Bandwidth: c.bandwidth, Throttle: c.throttle}
		m.usage["shop"] = store.Usage{In: 100}
		if a := m.accounts().Of("shop"); a.In.Rate() != c.want || a.Out.Rate() != c.want {
			t.Errorf("%s: got %d and %d, want %d", name, a.In.Rate(), a.Out.Rate(), c.want)
		}
	}
}

// TestBytesOfEitherWayAreCounted moves bytes in only one direction.
func TestBytesOfEitherWayAreCounted(t *testing.T) {
	for name, moved := range map[string][2]int{"in": {40, 0}, "out": {0, 40}} {
		m := newMonth()
		a := m.accounts()
		a.Of(name).Count(moved[0], moved[1])
		a.Settle(t.Context())
		a.Settle(t.Context())
		if !slices.Equal(m.asked, []string{name}) {
			t.Errorf("%s: bytes of %q were stored, want once", name, m.asked)
		}
	}
}

// waiting is a month in which a write blocks until it is released.
type waiting struct {
	*month
	began, goOn chan struct{}
}

func (w waiting) Add(context.Context, string, string, store.Tally) (store.Usage, error) {
	close(w.began)
	<-w.goOn
	return store.Usage{}, context.DeadlineExceeded
}

// TestNobodyWaitsForWhatIsStored asks what a client has moved, and applies its limits,
// while an unavailable store is asked to store it.
func TestNobodyWaitsForWhatIsStored(t *testing.T) {
	w := waiting{newMonth(), make(chan struct{}), make(chan struct{})}
	w.scopes["shop"] = scope.Scope{Monthly: 100, OverQuota: scope.OverStop}
	a := New(Config{Clients: w, Usages: w, Edge: w, Log: slog.New(slog.DiscardHandler)})
	a.Of("shop").Count(40, 0)
	var settling sync.WaitGroup
	settling.Go(func() { a.Settle(t.Context()) })
	<-w.began
	told := make(chan store.Usage, 1)
	go func() {
		a.Apply("shop")
		told <- a.Usage("shop", store.MonthOf(time.Now()))
	}()
	select {
	case u := <-told:
		if u.In != 40 {
			t.Errorf("it has moved %d bytes", u.In)
		}
	case <-time.After(10 * time.Second):
		t.Error("it is not told while the store is asked")
	}
	close(w.goOn)
	settling.Wait()
}
