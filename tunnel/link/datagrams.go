package link

import "context"

// DatagramServer is a Session that can deliver messages without waking another goroutine: handle is
// called with those that have arrived, in order, by the goroutine that reads them, so it must not
// block. The list and its messages are valid until handle returns. ServeDatagrams returns when the
// session or ctx has ended, and does not call handle after that. Only one call may be active at a
// time, and none of ReceiveDatagram alongside it.
type DatagramServer interface {
	ServeDatagrams(ctx context.Context, handle func([][]byte)) error
}

// ServeDatagrams passes the messages of s to handle, as a DatagramServer does if s is one, else as
// ReceiveDatagram returns them.
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

// DatagramGatherer is a Session that can gather messages: those passed to SendDatagram between
// GatherDatagrams and SendGathered leave together. Several callers may gather at once; none may
// block in between.
type DatagramGatherer interface {
	GatherDatagrams()
	SendGathered()
}

// GatherDatagrams starts gathering the messages of s, if s is a DatagramGatherer. SendGathered must
// follow.
func GatherDatagrams(s Session) {
	if g, ok := s.(DatagramGatherer); ok {
		g.GatherDatagrams()
	}
}

// SendGathered sends the messages that s has gathered.
func SendGathered(s Session) {
	if g, ok := s.(DatagramGatherer); ok {
		g.SendGathered()
	}
}
