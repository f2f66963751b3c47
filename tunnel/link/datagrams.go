package link

import "context"

// DatagramServer is a Session that spares the taker of its messages a wake-up:
// handle is called with those that have come, in order, by the goroutine that
// brings them, so it must not wait. The list and its messages are valid until
// handle returns. ServeDatagrams returns when the session or ctx has ended, and
// calls handle no more after that. It is called by one at a time, and not beside
// ReceiveDatagram.
type DatagramServer interface {
	ServeDatagrams(ctx context.Context, handle func([][]byte)) error
}

// ServeDatagrams gives handle the messages of s as a DatagramServer does it, or
// as ReceiveDatagram brings it if s is none.
func ServeDatagrams(ctx context.Context, s Session, handle func([][]byte)) error {
	if d, ok := s.(DatagramServer); ok {
		return d.ServeDatagrams(ctx, handle)
	}
	buf := make([]byte, 64<<10)
	list := make([][]byte, 1)
	for {
		n, err := s.ReceiveDatagram(ctx, buf)
		if err != nil {
			return err
		}
		list[0] = buf[:n]
		handle(list)
	}
}

// DatagramGatherer is a Session that can gather messages: those that SendDatagram
// takes between GatherDatagrams and SendGathered leave together. Several may
// gather at once; none must wait for anything meanwhile.
type DatagramGatherer interface {
	GatherDatagrams()
	SendGathered()
}

// GatherDatagrams gathers the messages of s from now on, if s is a DatagramGatherer.
// SendGathered must follow.
func GatherDatagrams(s Session) {
	if g, ok := s.(DatagramGatherer); ok {
		g.GatherDatagrams()
	}
}

// SendGathered sends what s has gathered.
func SendGathered(s Session) {
	if g, ok := s.(DatagramGatherer); ok {
		g.SendGathered()
	}
}
