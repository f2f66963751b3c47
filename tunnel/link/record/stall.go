package record

import (
	"bytes"
	"context"
	"errors"
	"time"
)

// ErrStalled is why Client gave a handshake up that went on no more. The server may be
// another than the one that began it, as after a restart, which does not understand what
// the client repeats: begun anew, over another socket, it may succeed at once.
var ErrStalled = errors.New("the server has left the handshake amid it")

// stallSteps is for how many repetitions nothing new may come from a server that has
// answered, and stallTrips for how many times as long as its first answer took.
const (
	stallSteps = 6
	stallTrips = 3
)

// watch gives a client's handshake up once the server has answered, and then nothing of it
// carries the handshake on, until ctx ends.
func (f *feed) watch(ctx context.Context, giveUp context.CancelCauseFunc, step time.Duration) {
	tick := time.NewTicker(step)
	defer tick.Stop()
	begun := time.Now()
	last, seen, patience := begun, int64(0), time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		heard := f.heard.Load()
		switch {
		case f.another.Load():
			giveUp(ErrStalled)
			return
		case heard != seen:
			if last, seen = time.Now(), heard; patience == 0 {
				patience = max(stallSteps*step, stallTrips*last.Sub(begun))
			}
		case seen > 0 && time.Since(last) > patience:
			giveUp(ErrStalled)
			return
		}
	}
}

// hear counts what carries a client's handshake on. A server asks for a cookie once, and for
// another one if it is not the one that began the handshake. It is of the goroutine that
// reads the socket.
func (f *feed) hear(p []byte) {
	if len(p) <= headerSize || p[0] != typeHandshake || p[headerSize] != helloVerifyRequest {
		f.heard.Add(1)
		return
	}
	switch asked := p[headerSize:]; {
	case f.cookie == nil:
		f.cookie = bytes.Clone(asked)
		f.heard.Add(1)
	case !bytes.Equal(f.cookie, asked):
		f.another.Store(true)
	}
}
