package link

import "context"

// DatagramServer is a Session that spares the taker of its messages a wake-up:
// handle is called for each, in order, by the goroutine that brings it, so it
// must not wait. A message is valid until handle returns. ServeDatagrams returns
// when the session or ctx has ended, and calls handle no more after that. It is
// called by one at a time, and not beside ReceiveDatagram.
type DatagramServer interface {
	ServeDatagrams(ctx context.Context, handle func([]byte)) error
}

// ServeDatagrams gives handle each message of s as a DatagramServer does it, or
// as ReceiveDatagram brings it if s is none.
func ServeDatagrams(ctx context.Context, s Session, handle func([]byte)) error {
	if d, ok := s.(DatagramServer); ok {
		return d.ServeDatagrams(ctx, handle)
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := s.ReceiveDatagram(ctx, buf)
		if err != nil {
			return err
		}
		handle(buf[:n])
	}
}
