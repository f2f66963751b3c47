package tray

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeDaemon is a local API whose answers the test decides.
type fakeDaemon struct {
	mu        sync.Mutex
	err       error      // guarded
	hangs     bool       // guarded
	status    Status     // guarded
	endpoints []Endpoint // guarded
	orders    []string   // guarded
	events    chan func()
}

func (d *fakeDaemon) Look(ctx context.Context) (Status, []Endpoint, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hangs {
		<-ctx.Done()
		return Status{}, nil, ctx.Err()
	}
	return d.status, d.endpoints, d.err
}

func (d *fakeDaemon) Order(_ context.Context, order string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.orders = append(d.orders, order)
	return nil
}

func (d *fakeDaemon) Watch(ctx context.Context, changed func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case change, ok := <-d.events:
			if !ok {
				return errors.New("the stream ended")
			}
			change()
			changed()
		}
	}
}

func (d *fakeDaemon) set(status Status, endpoints ...Endpoint) func() {
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.status, d.endpoints, d.err = status, endpoints, nil
	}
}

// fakeScreen is also the desk.
type fakeScreen struct {
	mu      sync.Mutex
	shows   []picture // guarded
	did     []string  // guarded
	openErr error
	login   bool     // guarded
	bodies  []string // of notifications; guarded
	asked   int      // how often it was asked about login; guarded
}

func (s *fakeScreen) loop(ctx context.Context, ready func()) error {
	ready()
	<-ctx.Done()
	return nil
}

func (s *fakeScreen) show(p picture) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shows = append(s.shows, p)
}

func (s *fakeScreen) do(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, what)
}

func (s *fakeScreen) notify(n Notice) error {
	s.do("notify " + n.Title)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, n.Body)
	return nil
}

func (s *fakeScreen) open(url string) error      { s.do("open " + url); return s.openErr }
func (s *fakeScreen) copyText(text string) error { s.do("copy " + text); return nil }
func (s *fakeScreen) panelLook() Look            { return LookDark }

func (s *fakeScreen) startsAtLogin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.login
}

func (s *fakeScreen) setStartAtLogin(_ []string, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.login = on
	return nil
}

func (s *fakeScreen) last() picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shows[len(s.shows)-1]
}

func (s *fakeScreen) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	did := s.did
	s.did = nil
	return did
}

func try(t *testing.T, daemon *fakeDaemon, s *fakeScreen, config Config, test func(clicks chan<- Action)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		daemon.events = make(chan func())
		config.Daemon, config.Log = daemon, slog.New(slog.DiscardHandler)
		config.WebUI = func(_ context.Context, place string) (string, error) { return "http://web" + place, nil }
		clicks := make(chan Action)
		c := &companion{config: config, desk: s, screen: s, clicks: clicks, words: english, seen: make(map[address]bool)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.run(ctx) }()
		synctest.Wait()
		test(clicks)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("got error %v", err)
		}
	})
}

func TestTrayFollowsEvents(t *testing.T) {
	d, s := &fakeDaemon{err: errors.New("refused")}, &fakeScreen{}
	try(t, d, s, Config{}, func(chan<- Action) {
		if got := s.last().icon; got != IconOff {
			t.Errorf("without a daemon: got icon %s", got)
		}
		d.events <- d.set(connected().Status)
		synctest.Wait()
		if got := s.last().icon; got != IconConnected {
			t.Errorf("connected: got icon %s", got)
		}
		if did := s.took(); len(did) != 0 {
			t.Errorf("at the start: got %v, want no notifications", did)
		}
		d.events <- d.set(connected().Status, web)
		synctest.Wait()
		if did := s.took(); !slices.Equal(did, []string{"notify New public address"}) {
			t.Errorf("new endpoint: got %v", did)
		}
		n := len(s.shows)
		d.events <- d.set(connected().Status, web)
		synctest.Wait()
		if len(s.shows) != n {
			t.Error("an event without a change has the menu drawn again")
		}
	})
}

// TestAddressesThatComeBackAreNoNews: a session that is there again has no endpoints
// yet, and the relay gives them a moment later.
func TestAddressesThatComeBackAreNoNews(t *testing.T) {
	d, s := &fakeDaemon{}, &fakeScreen{}
	d.set(connected().Status, web)()
	is := func(state string) Status {
		st := connected().Status
		st.State = state
		return st
	}
	try(t, d, s, Config{}, func(chan<- Action) {
		come := func(status Status, endpoints ...Endpoint) []string {
			d.events <- d.set(status, endpoints...)
			synctest.Wait()
			return s.took()
		}
		for name, step := range map[string][]string{"lost": {"reconnecting", "notify Connection lost", "notify Connected again"}, "paused": {"paused"}} {
			did := come(is(step[0]))
			did = append(did, come(is("connected"))...)
			did = append(did, come(is("connected"), web)...)
			if !slices.Equal(did, step[1:]) {
				t.Errorf("%s: got %v, want %v", name, did, step[1:])
			}
		}
		anew := web
		anew.TunnelID = "t2"
		if did := come(is("connected")); len(did) > 0 {
			t.Errorf("a tunnel is gone: got %v", did)
		}
		if did := come(is("connected"), anew); !slices.Equal(did, []string{"notify New public address"}) {
			t.Errorf("another tunnel at its address: got %v", did)
		}
	})
}

// TestOnlyWhatWasLostIsBack: a session that is there for the first time, or because the
// person has resumed it, is none that is there again.
func TestOnlyWhatWasLostIsBack(t *testing.T) {
	d, s := &fakeDaemon{}, &fakeScreen{}
	is := func(state string) func() {
		st := connected().Status
		st.State = state
		return d.set(st)
	}
	is("connecting")() // as while the machine starts
	const lost, back = "notify Connection lost", "notify Connected again"
	gone := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.err = errors.New("refused")
	}
	try(t, d, s, Config{}, func(chan<- Action) {
		for _, step := range []struct {
			name   string
			events []func()
			want   []string
		}{
			{"the first session", []func(){is("connected")}, nil},
			{"resumed", []func(){is("paused"), is("connecting"), is("connected")}, nil},
			{"lost", []func(){is("reconnecting"), is("connecting"), is("connected")}, []string{lost, back}},
			{"the daemon started again", []func(){gone, is("connecting"), is("connected")}, []string{lost, back}},
		} {
			for _, e := range step.events {
				d.events <- e
				synctest.Wait()
			}
			if did := s.took(); !slices.Equal(did, step.want) {
				t.Errorf("%s: got %v, want %v", step.name, did, step.want)
			}
		}
	})
}

// Traffic makes events every second, and the answer costs a program to run on macOS.
func TestEventsDoNotAskTheDesktopAnew(t *testing.T) {
	d, s := &fakeDaemon{status: connected().Status}, &fakeScreen{}
	checked := func() bool {
		items := s.last().items
		return items[slices.IndexFunc(items, func(i Item) bool { return i.Action.Kind == AtLogin })].Checked
	}
	try(t, d, s, Config{}, func(clicks chan<- Action) {
		for range 20 {
			d.events <- d.set(connected().Status, web)
			synctest.Wait()
		}
		if s.asked != 1 {
			t.Errorf("the desktop was asked %d times about what starts at login, want once", s.asked)
		}
		clicks <- Action{Kind: AtLogin}
		synctest.Wait()
		if !checked() {
			t.Error("a click on it does not show")
		}
		s.setStartAtLogin(nil, false) // by somebody else
		time.Sleep(idleLook)
		synctest.Wait()
		if checked() {
			t.Error("what somebody else has changed does not show")
		}
	})
}

func TestClicksHaveTheirEffect(t *testing.T) {
	d, s := &fakeDaemon{}, &fakeScreen{}
	d.set(connected().Status, web)()
	var started int
	config := Config{StartDaemon: func(context.Context) error { started++; return nil }}
	try(t, d, s, config, func(clicks chan<- Action) {
		for _, a := range []Action{
			{CopyURL, "https://web.example"},
			{OpenURL, "https://web.example"},
			{OpenWebUI, "/#/tunnels/qr:t1"},
			{Order, "pause"},
			{Order, "reconnect"},
			{StartDaemon, ""},
			{AtLogin, ""},
		} {
			clicks <- a
			synctest.Wait()
		}
		want := []string{"copy https://web.example", "notify Address copied", "open https://web.example", "open http://web/#/tunnels/qr:t1"}
		if did := s.took(); !slices.Equal(did, want) {
			t.Errorf("got %q, want %q", did, want)
		}
		if !slices.Equal(d.orders, []string{"pause", "reconnect"}) || started != 1 || !s.startsAtLogin() {
			t.Errorf("got orders %v, %d starts, at login %t", d.orders, started, s.startsAtLogin())
		}
	})
}

func TestAFailedClickIsTold(t *testing.T) {
	d, s := &fakeDaemon{}, &fakeScreen{openErr: errors.New("no browser")}
	d.set(connected().Status)()
	try(t, d, s, Config{}, func(clicks chan<- Action) {
		clicks <- Action{OpenWebUI, ""}
		synctest.Wait()
		if did := s.took(); !slices.Contains(did, "notify adit could not do that") {
			t.Errorf("got %q", did)
		}
		if got := s.last().items[1].Title; got != "no browser" {
			t.Errorf("got second line %q, want the reason", got)
		}
		d.events <- d.set(Status{Configured: true, State: "paused"})
		synctest.Wait()
		if got := s.last().items[1]; !got.Separator {
			t.Errorf("got second line %+v, want the reason gone", got)
		}
	})
}

// What relays and errors say may turn the order of a notification's text, or be
// longer than the screen.
func TestNotificationsShowTextOfOthersAsWhatItIs(t *testing.T) {
	long := strings.Repeat("长", 4000)
	for said, want := range map[string]string{
		"no\u202eetuor \x1bhere": "no\\u202eetuor  here",
		long:                     strings.Repeat("长", maxNotice-1) + "…",
	} {
		d, s := &fakeDaemon{}, &fakeScreen{openErr: errors.New(said)}
		d.set(connected().Status)()
		try(t, d, s, Config{}, func(clicks chan<- Action) {
			d.events <- d.set(Status{Configured: true, State: "reconnecting", LastError: said})
			synctest.Wait()
			clicks <- Action{OpenURL, "https://web.example"}
			synctest.Wait()
			if !slices.Equal(s.bodies, []string{want, want}) {
				t.Errorf("%.20q: got %.40q, want twice %.40q", said, s.bodies, want)
			}
		})
	}
}

func TestQuitEndsTheTray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := &fakeDaemon{events: make(chan func())}, &fakeScreen{}
		clicks := make(chan Action, 1)
		clicks <- Action{Kind: Quit}
		c := &companion{config: Config{Daemon: d, Log: slog.New(slog.DiscardHandler)}, desk: s, screen: s, clicks: clicks, words: english, seen: make(map[address]bool)}
		if err := c.run(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestADaemonThatHangsIsNotSaidToBeDown(t *testing.T) {
	d, s := &fakeDaemon{}, &fakeScreen{}
	d.set(connected().Status, web)()
	start := func(context.Context) error { return nil }
	try(t, d, s, Config{StartDaemon: start}, func(chan<- Action) {
		d.events <- func() { d.mu.Lock(); d.hangs = true; d.mu.Unlock() }
		time.Sleep(10 * time.Second)
		synctest.Wait()
		got := s.last()
		if got.icon != IconAttention || got.title != "adit: The daemon does not answer" || got.items[0].Title != "The daemon does not answer" {
			t.Errorf("got icon %s, title %q, first line %q", got.icon, got.title, got.items[0].Title)
		}
		if slices.ContainsFunc(got.items, func(i Item) bool { return i.Action.Kind == StartDaemon }) {
			t.Error("it is offered to start a daemon that runs")
		}
		if !slices.Equal(s.bodies, []string{"The daemon does not answer"}) {
			t.Errorf("got the notifications %q", s.bodies)
		}
	})
}

func TestALostStreamIsOpenedAgain(t *testing.T) {
	d, s := &fakeDaemon{}, &fakeScreen{}
	try(t, d, s, Config{}, func(chan<- Action) {
		old := d.events
		d.mu.Lock()
		d.err = errors.New("gone")
		d.mu.Unlock()
		close(old)
		synctest.Wait()
		if got := s.last().icon; got != IconOff {
			t.Errorf("got icon %s, want that the daemon is gone seen at once", got)
		}
	})
}
