package stdio

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// output is where a command writes. It notes what got lost on the way, so that
// nobody takes an empty file for an answer.
type output struct {
	io.Writer

	mu   sync.Mutex
	lost error // the first
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	// A reader that has gone, as head has, wants no more.
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		o.mu.Lock()
		if o.lost == nil {
			o.lost = err
		}
		o.mu.Unlock()
	}
	return n, err
}

// failure is the error that ended a command, or what got lost of its output. It
// reports whether that is it.
func (o *output) failure(err error) (error, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost != nil && (err == nil || errors.Is(err, o.lost)) {
		return o.lost, true
	}
	return err, false
}
