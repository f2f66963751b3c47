package agent

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// stuck is a log that stands still at a message, as a terminal does that is told to.
type stuck struct {
	slog.Handler
	at         string
	once       *sync.Once
	told, goOn chan struct{}
}

func (s stuck) Enabled(context.Context, slog.Level) bool { return true }

func (s stuck) Handle(_ context.Context, r slog.Record) error {
	if r.Message == s.at {
		s.once.Do(func() { close(s.told) })
		<-s.goOn
	}
	return nil
}

func TestAgentAnswersWhileItsLogStandsStill(t *testing.T) {
	for _, message := range []string{"session lost", "no session with the relay", "relay refuses the token"} {
		t.Run(message, func(t *testing.T) {
			r := newFakeRelay(t)
			log := stuck{Handler: slog.DiscardHandler, at: message, once: new(sync.Once), told: make(chan struct{}), goOn: make(chan struct{})}
			a, _ := configured(t, r, Config{Logger: slog.New(log)})
			defer close(log.goOn)
			if message == "relay refuses the token" {
				r.set(func() { r.refuse = expired() })
				r.session().Close("again")
			} else {
				r.kill()
			}
			select {
			case <-log.told:
			case <-time.After(patience):
				t.Fatal("it was never told")
			}
			answered := make(chan struct{})
			go func() {
				a.Status()
				close(answered)
			}()
			select {
			case <-answered:
			case <-time.After(5 * time.Second):
				t.Error("the agent does not answer")
			}
		})
	}
}
