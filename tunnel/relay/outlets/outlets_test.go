package outlets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/tunnel/relay/sink"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// shelf is a store of sinks.
type shelf struct {
	mu      sync.Mutex
	list    []store.StoredSink
	changed func(string)
}

func (s *shelf) List() []store.StoredSink {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

func (s *shelf) OnChange(f func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = f
}

// set replaces everything that is stored.
func (s *shelf) set(list ...store.StoredSink) {
	s.mu.Lock()
	s.list = list
	changed := s.changed
	s.mu.Unlock()
	if changed != nil {
		changed("")
	}
}

func webhook(name, url string, version int64) store.StoredSink {
	document, err := json.Marshal(sink.Config{Type: sink.Webhook, URL: url, Events: []string{sink.Access}})
	if err != nil {
		panic(err)
	}
	return store.StoredSink{Name: name, Document: document, Changed: time.Unix(version, 0)}
}

func TestSinksThatAreStoredRun(t *testing.T) {
	got := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got <- r.URL.Path + " " + string(text)
	}))
	defer hook.Close()
	wait := time.After(30 * time.Second)
	delivered := func(to, what string) {
		t.Helper()
		for {
			select {
			case text := <-got:
				if strings.HasPrefix(text, to+" ") && strings.Contains(text, what) {
					return
				}
			case <-wait:
				t.Fatalf("%s was not sent to %s", what, to)
			}
		}
	}
	stored := &shelf{list: []store.StoredSink{webhook("one", hook.URL+"/one", 1), {Name: "sealed", Fault: errors.New("its key is another's")}}}
	o := New(Config{Store: stored, Node: "here", Private: true, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); o.Run(ctx) }()
	running := func(name string, want bool) {
		t.Helper()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			if _, runs := o.State(name); runs == want {
				return
			}
			select {
			case <-tick.C:
			case <-wait:
				t.Fatalf("%s runs: %v", name, !want)
			}
		}
	}
	running("one", true)
	running("sealed", false)
	o.Access(wire.Access{Path: "/first"})
	delivered("/one", "/first")
	stored.set(webhook("one", hook.URL+"/moved", 2), webhook("two", hook.URL+"/two", 1))
	running("two", true)
	o.Access(wire.Access{Path: "/second"})
	for left := map[string]bool{"/moved": true, "/two": true}; len(left) > 0; {
		select {
		case text := <-got:
			to, _, _ := strings.Cut(text, " ")
			if !strings.Contains(text, "/second") {
				t.Errorf("got %s", text)
			}
			delete(left, to)
		case <-wait:
			t.Fatal(fmt.Sprint("nothing was sent to ", left))
		}
	}
	stored.set(webhook("two", hook.URL+"/two", 1))
	running("one", false)
	stored.set(store.StoredSink{Name: "two", Document: []byte("{"), Changed: time.Unix(2, 0)})
	running("two", false) // nobody knows where it is to deliver now
	stored.set(webhook("two", hook.URL+"/two", 3))
	running("two", true)
	stop()
	<-ended
}
