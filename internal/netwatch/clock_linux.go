package netwatch

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// far is when the clock's timer is due, which is looked at then and set anew.
const far = 30 * 24 * time.Hour

// clock is a timer that the kernel cancels when the wall clock jumps: when it is
// set, and when the machine wakes up (man 2 timerfd_create, TFD_TIMER_CANCEL_ON_SET).
type clock struct{ *os.File }

func newClock() (clock, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return clock{}, err
	}
	c := clock{os.NewFile(uintptr(fd), "timerfd")}
	if err := c.set(far); err != nil {
		c.Close()
		return clock{}, err
	}
	return c, nil
}

// set has the timer come due after wait.
func (c clock) set(wait time.Duration) error {
	var now unix.Timespec // of the clock that the timer goes by
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
		return err
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(now.Nano() + int64(wait))}
	conn, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &spec, nil)
	})
	return errors.Join(err, failed)
}

// read offers a piece for each jump until the clock is closed.
func (c clock) read(ch chan<- piece) {
	_ = jumps(c.Read, func() error { return c.set(far) }, ch)
}

// jumps is read with its system calls given.
func jumps(read func([]byte) (int, error), again func() error, ch chan<- piece) error {
	var due [8]byte
	for {
		if _, err := read(due[:]); err != nil && !errors.Is(err, unix.ECANCELED) {
			return err
		}
		offer(ch, changed) // a look tells a sleep by both clocks
		if err := again(); err != nil {
			return err
		}
	}
}
