package netwatch

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// hub passes on what Windows tells. Callbacks cannot be given back, so there is
// one of each for the whole process, registered by the first subscriber.
var hub struct {
	once  sync.Once
	told  bool // of the network
	woken bool // of wake-ups

	mu          sync.Mutex
	subscribers map[chan piece]bool
}

// subscribe has the system tell of links, addresses, routes and wake-ups, as far
// as it does; stop ends that.
func subscribe() (sys system, stop func()) {
	hub.once.Do(register)
	if !hub.told {
		return system{}, func() {}
	}
	ch := make(chan piece, 16)
	hub.mu.Lock()
	hub.subscribers[ch] = true
	hub.mu.Unlock()
	return system{news: ch, whole: hub.woken}, func() {
		hub.mu.Lock()
		delete(hub.subscribers, ch)
		hub.mu.Unlock()
	}
}

func publish(p piece) {
	hub.mu.Lock()
	defer hub.mu.Unlock()
	for ch := range hub.subscribers {
		offer(ch, p)
	}
}

// register asks for everything. Each of these calls back on a thread of the
// system's own.
func register() {
	hub.subscribers = make(map[chan piece]bool)
	network := windows.NewCallback(func(context, row, kind uintptr) uintptr {
		publish(changed)
		return 0
	})
	hub.told = true
	for _, ask := range []func(uint16, uintptr, unsafe.Pointer, bool, *windows.Handle) error{
		windows.NotifyIpInterfaceChange, windows.NotifyUnicastIpAddressChange, windows.NotifyRouteChange2,
	} {
		var handle windows.Handle // never cancelled: it is for the whole process
		if err := ask(windows.AF_UNSPEC, network, nil, false, &handle); err != nil {
			hub.told = false
		}
	}
	hub.woken = registerWake()
}

// What PowerRegisterSuspendResumeNotification takes and tells (powerbase.h, winuser.h).
const (
	deviceNotifyCallback  = 2
	resumeSuspend         = 0x7
	resumeAutomatic       = 0x12
	powerRegisterFunction = "PowerRegisterSuspendResumeNotification"
)

// wakeSubscription is DEVICE_NOTIFY_SUBSCRIBE_PARAMETERS; the system may read it
// as long as it calls back.
var wakeSubscription struct{ callback, context uintptr }

// registerWake asks to be told of wake-ups and reports whether it will be.
func registerWake() bool {
	register := windows.NewLazySystemDLL("powrprof.dll").NewProc(powerRegisterFunction)
	if register.Find() != nil {
		return false
	}
	wakeSubscription.callback = windows.NewCallback(func(context, kind, setting uintptr) uintptr {
		if uint32(kind) == resumeSuspend || uint32(kind) == resumeAutomatic {
			publish(woke)
		}
		return 0
	})
	var handle uintptr
	failed, _, _ := register.Call(deviceNotifyCallback, uintptr(unsafe.Pointer(&wakeSubscription)), uintptr(unsafe.Pointer(&handle)))
	return failed == 0
}
