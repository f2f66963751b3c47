package engine

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestServerBegunAnewIsOne restarts the server several times under a connection that sends
// requests without pause. Each time the server is reached again, and nothing remains of the
// earlier ones.
func TestServerBegunAnewIsOne(t *testing.T) {
	e, err := Open(Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, stop := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { asked <- askUntil(ctx, e) }()
	few := 0
	for n := range 4 {
		if err := e.reopen(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := e.js.AccountInfo(t.Context()); err != nil {
			t.Fatalf("after %d times: %v", n+1, err)
		}
		if n == 0 {
			few = runtime.NumGoroutine()
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	for runtime.NumGoroutine() > few && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > few {
		t.Errorf("%d goroutines run, and %d did after the first time", now, few)
	}
	stop()
	if err := <-asked; err != nil {
		t.Error(err)
	}
}

// askUntil asks the server again and again until ctx ends; it may be away.
func askUntil(ctx context.Context, e *Engine) error {
	for {
		_, err := e.js.AccountInfo(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrConnectionClosed):
			return err
		}
	}
}
