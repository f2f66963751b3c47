package forward

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"adit/tunnel/link"
)

// lookEvery is how often it is looked whether a visitor is there still whose local service
// is being dialled.
const lookEvery = 250 * time.Millisecond

// errLeft is why a service is dialled no longer.
var errLeft = errors.New("the visitor has left")

// whilePresent returns a context that ends, with errLeft as its cause, when the edge gives
// up a visitor's stream: a service that hangs would else be dialled for all who have come
// and gone for as long as it may take to answer. Nobody else may read from the stream until
// done, which must be called.
func whilePresent(ctx context.Context, stream link.Stream) (_ context.Context, done func()) {
	ctx, leave := context.WithCancelCause(ctx)
	var mu sync.Mutex // guards over, and timer until it is set
	var over bool
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(lookEvery, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if _, err := stream.Read(nil); err != nil && !errors.Is(err, io.EOF) { // it takes nothing, and does not wait
			leave(errLeft)
			return
		}
		timer.Reset(lookEvery)
	})
	return ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
		leave(nil)
	}
}
