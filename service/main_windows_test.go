package service

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
)

// A person who logs off ends the context of the whole process, by SIGTERM. The
// service goes on until its manager stops it.
func TestServiceOutlivesAPersonWhoLogsOff(t *testing.T) {
	loggedOff, cancel := context.WithCancel(t.Context())
	cancel()
	stopped := false
	h := &handler{ctx: loggedOff, run: func(ctx context.Context, ready func()) error {
		ready()
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
			t.Error("the manager's stop did not come through")
		}
		if !stopped {
			t.Error("it ended before the manager stopped it")
		}
		return nil
	}}
	requests, status := make(chan svc.ChangeRequest), make(chan svc.Status, 16)
	type end struct {
		specific bool
		code     uint32
	}
	ended := make(chan end, 1)
	go func() {
		specific, code := h.Execute(nil, requests, status)
		ended <- end{specific, code}
	}()
	for s := range status {
		if s.State == svc.Running {
			break
		}
	}
	for range 3 { // each is answered, so that it has looked at its context
		requests <- svc.ChangeRequest{Cmd: svc.Interrogate}
		<-status
	}
	stopped = true
	requests <- svc.ChangeRequest{Cmd: svc.Stop}
	if got := <-ended; got != (end{}) {
		t.Errorf("got %+v, want a good end", got)
	}
}

func TestServiceHasSeenToLogOffAlone(t *testing.T) {
	for event, want := range map[uintptr]uintptr{
		windows.CTRL_LOGOFF_EVENT: 1, windows.CTRL_SHUTDOWN_EVENT: 0, windows.CTRL_CLOSE_EVENT: 0, windows.CTRL_C_EVENT: 0, windows.CTRL_BREAK_EVENT: 0,
	} {
		if got := seenTo(event); got != want {
			t.Errorf("event %d: got %d, want %d", event, got, want)
		}
	}
	stayAtLogOff()
}

// Who starts the service is to hear that it failed, and not that it runs.
func TestServiceRunsOnceItAnswers(t *testing.T) {
	h := &handler{ctx: t.Context(), run: func(context.Context, func()) error { return errors.New("the port is in use") }}
	status := make(chan svc.Status, 16)
	if specific, code := h.Execute(nil, make(chan svc.ChangeRequest), status); !specific || code != 1 {
		t.Errorf("got %v, %d, want a failure", specific, code)
	}
	close(status)
	for s := range status {
		if s.State == svc.Running {
			t.Error("it was said to run")
		}
	}
}
