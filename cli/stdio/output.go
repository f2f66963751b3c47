package stdio

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// output is where a command writes. It remembers write errors, so that nobody takes an empty file
// for a result.
type output struct {
	io.Writer

	mu   sync.Mutex
	lost error // the first
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	// A reader that has gone, such as head, wants no more.
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		o.mu.Lock()
		if o.lost == nil {
			o.lost = err
		}
		o.mu.Unlock()
	}
	return n, err
}

// failure returns the error that ended a command, or else a write error of its output. It reports
// whether it is the latter.
func (o *output) failure(err error) (error, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost != nil && (err == nil || errors.Is(err, o.lost)) {
		return o.lost, true
	}
	return err, false
}
