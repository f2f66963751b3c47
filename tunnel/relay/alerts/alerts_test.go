package alerts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/sink"
)

// scene is a relay whose clients come and go as a test says.
type scene struct {
	mu      sync.Mutex
	clients map[string]Client
	second  bool // another node tells
	told    []string
}

func (s *scene) list() []Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Client
	for _, c := range s.clients {
		list = append(list, c)
	}
	return list
}

func (s *scene) set(name string, connected bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[name]
	c.ID, c.Name, c.Connected = name, name, connected
	s.clients[name] = c
}

func (s *scene) is(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// heard returns what has been reported since it was last called, sorted.
func (s *scene) heard() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.told
	s.told = nil
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// watch runs a test in virtual time, with a Watch of the scene's clients.
func watch(t *testing.T, clients map[string]Client, f func(*scene, *Watch)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{clients: clients}
		for name, c := range clients {
			c.ID, c.Name = name, name
			clients[name] = c
		}
		w := New(Config{
			Clients: s.list,
			First:   func() bool { s.mu.Lock(); defer s.mu.Unlock(); return !s.second },
			Tell: func(c sink.Client) {
				s.mu.Lock()
				defer s.mu.Unlock()
				said := c.Client + " " + c.State
				if c.Since != nil {
					said += fmt.Sprintf(" for %v", c.Time.Sub(*c.Since).Truncate(time.Minute))
				}
				s.told = append(s.told, said)
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { w.Run(ctx) })
		defer run.Wait()
		defer stop()
		synctest.Wait()
		f(s, w)
	})
}

func TestWhoIsAwayAndBackIsToldOnce(t *testing.T) {
	watch(t, map[string]Client{"shop": {Connected: true}, "new": {}}, func(s *scene, _ *Watch) {
		hear := func(after time.Duration, want string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := s.heard(); got != want {
				t.Errorf("heard %q, want %q", got, want)
			}
		}
		hear(time.Hour, "")
		s.set("new", true)
		hear(2*lookEvery, "new connected")
		s.set("shop", false)
		hear(grace/2, "")
		s.set("shop", true)
		hear(time.Hour, "") // it was only moving
		s.set("shop", false)
		hear(grace+2*lookEvery, "shop away for 1m0s")
		hear(time.Hour, "")
		s.set("shop", true)
		hear(2*lookEvery, "shop connected")
		s.set("later", true) // a client that was added
		hear(2*lookEvery, "later connected")
		s.set("new", false)
		s.is(func() { delete(s.clients, "new") }) // and one that was revoked
		hear(time.Hour, "")
	})
}

func TestWhoDoesNotComeBackToANewRelayIsAway(t *testing.T) {
	end := time.Date(1999, 12, 31, 12, 0, 0, 0, time.UTC) // of the relay before
	watch(t, map[string]Client{
		"back":    {Seen: end},
		"lost":    {Seen: end.Add(-time.Second)},
		"killed":  {Seen: end.Add(-time.Hour), SeenThere: true},
		"away":    {Seen: end.Add(-time.Hour)},
		"unknown": {},
	}, func(s *scene, _ *Watch) {
		time.Sleep(grace / 2)
		s.set("back", true)
		time.Sleep(grace)
		synctest.Wait()
		if got, want := s.heard(), "killed away for 1m0s, lost away for 1m0s"; got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	})
}

func TestOneNodeTellsAndAnotherTakesItsPlace(t *testing.T) {
	watch(t, map[string]Client{"shop": {Connected: true}}, func(s *scene, _ *Watch) {
		s.is(func() { s.second = true })
		s.set("shop", false)
		time.Sleep(2 * grace)
		synctest.Wait()
		if got := s.heard(); got != "" {
			t.Errorf("a node that is not the first told %q", got)
		}
		s.is(func() { s.second = false })
		s.set("shop", true)
		time.Sleep(2 * lookEvery)
		synctest.Wait()
		if got, want := s.heard(), "shop connected"; got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	})
}

func TestReportsOfAClientAreBounded(t *testing.T) {
	watch(t, map[string]Client{"shop": {Connected: true}, "loud": {Connected: true}}, func(s *scene, w *Watch) {
		report := func(name string, n int) {
			for range n {
				w.Reported(sink.Client{Client: name, ClientID: name, State: sink.Faulty})
			}
		}
		count := func() (n int) { return strings.Count(s.heard(), "error") }
		report("loud", 1000)
		report("shop", 1)
		if got := count(); got != reports+1 {
			t.Errorf("%d reports were told, want %d", got, reports+1)
		}
		time.Sleep(reportGap)
		report("loud", 1000)
		if got := count(); got != 1 {
			t.Errorf("%d reports were told after %v, want one", got, reportGap)
		}
	})
}
