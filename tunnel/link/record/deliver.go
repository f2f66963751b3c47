package record

const (
	// maxFinished is the size limit of a record that may be a repeated Finished.
	maxFinished = 128
	// maxRepeats limits how many messages of a finished handshake are passed to pion again.
	maxRepeats = 64
	// maxStrange limits the bytes of a client's handshake that are passed to pion, which would keep
	// megabytes of messages that are never completed. A handshake needs far less, even one with
	// constant repetitions.
	maxStrange = 256 << 10
)

// deliver takes what the socket received for this session. While pion is involved, that is until
// the peer has shown that it has our Finished, datagrams are examined one by one.
func (c *Conn) deliver(in *inbound) {
	f := c.feed.Load()
	switch {
	case f != nil && !in.isApplication():
		ready := c.ready.Load()
		for len(in.data) > 0 {
			c.share(f, ready, in, in.next())
		}
		in.release()
	case f != nil, c.ready.Load():
		c.enqueue(in) // before there are keys it waits
	default:
		in.release()
	}
}

// isApplication reports whether nothing in a buffer can belong to a handshake.
func (in *inbound) isApplication() bool {
	for rest := in.data; len(rest) > 0; rest = rest[min(in.seg, len(rest)):] {
		if r, _, ok := parse(rest[:min(in.seg, len(rest))], cidSize); !ok || !r.isApplication() {
			return false
		}
	}
	return true
}

// share passes one datagram to pion, to Receive, or to both.
func (c *Conn) share(f *feed, ready bool, in *inbound, p []byte) {
	r, rest, ok := parse(p, cidSize)
	switch {
	case !ok, r.typ == typeCID && r.epoch() == 0:
		return
	case r.isApplication():
		c.enqueue(in.copyOf(p))
		return
	case !ready:
		if c.isClient {
			f.hear(p)
		}
		if c.strange += len(p); c.isClient || c.strange <= maxStrange {
			f.push(p)
		}
		return
	}
	if r.epoch() > 0 {
		c.enqueue(in.copyOf(p)) // an alert, perhaps
	}
	for ; ok; r, rest, ok = parse(rest, cidSize) {
		if r.mayRepeat() && c.handed < maxRepeats {
			c.handed++
			f.push(r.whole)
		}
	}
}

// isApplication reports whether a record cannot belong to a handshake.
func (r rawRecord) isApplication() bool {
	return r.typ == typeApplication || r.typ == typeCID && r.number() >= controlBase
}

// mayRepeat reports whether a record may be a repeated message of the peer's last flight, to which
// pion responds by repeating its own. Anything that could end the handshake is not passed on,
// because it is not authenticated: no alert and no ClientHello.
func (r rawRecord) mayRepeat() bool {
	switch {
	case r.epoch() == 0:
		return r.typ == typeHandshake && len(r.body) > 0 && r.body[0] != clientHello
	case r.typ == typeHandshake, r.typ == typeCID:
		return len(r.whole) <= maxFinished && !r.isApplication()
	}
	return false
}
