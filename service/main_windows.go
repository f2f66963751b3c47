package service

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
)

// Main runs the daemon, as a service or in a terminal, until it ends by itself
// or is told to stop. Run calls ready once the daemon answers.
func Main(ctx context.Context, run func(ctx context.Context, ready func()) error) error {
	// Connecting to the service manager is the only reliable sign of having been started by it; the
	// session id and the parent process are not.
	h := &handler{ctx: ctx, run: run}
	err := svc.Run(Name, h)
	if !errors.Is(err, windows.ERROR_FAILED_SERVICE_CONTROLLER_CONNECT) {
		return errors.Join(err, h.err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	return run(ctx, func() {})
}

// handler talks to the service manager while run is running.
type handler struct {
	ctx context.Context // of Main, which the manager's callback cannot be given
	run func(ctx context.Context, ready func()) error
	err error
}

// Execute implements svc.Handler. A non-zero exit code makes the manager restart the service.
func (h *handler) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	// To the manager, the service is running once it answers: whoever starts it learns if it ends
	// before that.
	status <- svc.Status{State: svc.StartPending, WaitHint: 60_000}
	// Only the manager ends a service. Console events, which Go turns into SIGTERM, also reach it
	// when anybody logs off or the machine shuts down; the manager has its own requests for that.
	stayAtLogOff()
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.ctx))
	defer cancel()
	ended, ready := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(ended)
		h.err = h.run(ctx, sync.OnceFunc(func() { close(ready) }))
	})
	stopping := false
	var tick <-chan time.Time
	for {
		select {
		case <-ended:
			wg.Wait()
			if h.err != nil {
				report(h.err)
				return true, 1
			}
			// Ending unasked counts as a failure to the manager; otherwise it would not restart the
			// service.
			if !stopping {
				return true, 2
			}
			return false, 0
		case <-ready:
			ready = nil
			status <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
		case <-tick:
			status <- svc.Status{State: svc.StopPending, WaitHint: 5_000}
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				status <- r.CurrentStatus
			case svc.Stop, svc.Shutdown:
				if stopping {
					continue
				}
				stopping = true
				status <- svc.Status{State: svc.StopPending, WaitHint: 5_000}
				ticker := time.NewTicker(2 * time.Second)
				defer ticker.Stop()
				tick = ticker.C
				cancel()
			}
		}
	}
}

var setConsoleCtrlHandler = windows.NewLazySystemDLL("kernel32.dll").NewProc("SetConsoleCtrlHandler")

// stayAtLogOff keeps the process running when a person logs off, which ends every process with a
// console whose handlers do not claim to have dealt with the event. It never ends.
var stayAtLogOff = sync.OnceFunc(func() {
	const yes = 1
	// If the handler cannot be set, everything stays as it would be without it.
	_, _, _ = setConsoleCtrlHandler.Call(windows.NewCallback(seenTo), yes)
})

// seenTo answers a console event: 1 means that no other handler is to be asked.
func seenTo(event uintptr) uintptr {
	if uint32(event) == windows.CTRL_LOGOFF_EVENT {
		return 1
	}
	return 0
}

// report writes the reason why the daemon ended to where an administrator looks.
func report(err error) {
	if log, openErr := eventlog.Open(Name); openErr == nil {
		defer log.Close()
		// The daemon ends with this error in any case.
		_ = log.Error(1, err.Error())
	}
}
