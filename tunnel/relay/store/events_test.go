package store

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"adit/tunnel/wire"
)

// TestSearchGoesOnBehindABatchThatCannotBeRead has nonsense among the batches.
func TestSearchGoesOnBehindABatchThatCannotBeRead(t *testing.T) {
	var said bytes.Buffer
	s, err := Open(t.Context(), Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, host := range []string{"old", "", "new"} {
		if host != "" {
			if err := s.Events.Append(t.Context(), []wire.Access{{Time: time.Now(), Host: host}}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		msg := nats.NewMsg(eventsSubject)
		msg.Header.Set(headerEncoding, encodingS2)
		msg.Data = []byte("nonsense")
		if _, err := s.Events.js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		var hosts []string
		_, done, err := s.Events.Walk(t.Context(), Scan{}, func(a *wire.Access) bool {
			hosts = append(hosts, a.Host)
			return true
		})
		if err != nil || !done || !slices.Equal(hosts, []string{"new", "old"}) {
			t.Errorf("got %q, done %v, %v; want new and old", hosts, done, err)
		}
	}
	if n := strings.Count(said.String(), "batch=2"); n != 1 {
		t.Errorf("the log has the batch %d times, want once:\n%s", n, said.String())
	}
}
