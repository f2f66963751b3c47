package visits

import (
	"context"
	"sync"

	"adit/tunnel/agent/splice"
)

// Visit leads a connection to another client's private tunnel, which is called
// CLIENT/NAME, until both directions are over or ctx ends. Once the relay has let it
// in, take gives the connection, and closing that is left to Visit; an error before
// that says why not, and take is not called.
func (vs *Visits) Visit(ctx context.Context, tunnel string, take func() (splice.HalfCloser, error)) error {
	return vs.visit(ctx, tunnel, take, func(int, int) {})
}

// visit is Visit with moved told how many bytes go to the tunnel and come from it.
func (vs *Visits) visit(ctx context.Context, tunnel string, take func() (splice.HalfCloser, error), moved func(to, from int)) error {
	stream, err := vs.dial(ctx, tunnel)
	if err != nil {
		return err
	}
	defer stream.Close()
	local, err := take()
	if err != nil {
		stream.Reset()
		return err
	}
	defer local.Close()
	abort := sync.OnceFunc(func() {
		stream.Reset()
		if tcp, ok := local.(interface{ SetLinger(sec int) error }); ok {
			_ = tcp.SetLinger(0) // it is cut, not ended
		}
		local.Close()
	})
	defer context.AfterFunc(ctx, abort)()
	var wg sync.WaitGroup
	wg.Go(func() {
		err := splice.Half(stream, local, func(b []byte) { moved(len(b), 0) }, nil)
		if err != nil || stream.CloseWrite() != nil {
			abort()
		}
	})
	err = splice.Half(local, stream, func(b []byte) { moved(0, len(b)) }, nil)
	if err != nil || local.CloseWrite() != nil {
		abort()
	}
	wg.Wait()
	return nil
}
