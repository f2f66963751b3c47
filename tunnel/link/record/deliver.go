package record

const (
	// maxFinished bounds a record that may be a repeated Finished.
	maxFinished = 128
	// maxRepeats bounds what of a finished handshake is given to pion again.
	maxRepeats = 64
	// maxStrange bounds the bytes of a client's handshake that pion is given, which
	// keeps megabytes of messages that never become whole. A handshake has far less,
	// also one that is repeated all the time.
	maxStrange = 256 << 10
)

// deliver takes what the socket brought for this session. While pion has a part
// in it, that is until the peer has shown that it has our Finished, datagrams
// are looked at one by one.
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

// isApplication reports whether nothing in a buffer can be of a handshake.
func (in *inbound) isApplication() bool {
	for rest := in.data; len(rest) > 0; rest = rest[min(in.seg, len(rest)):] {
		if r, _, ok := parse(rest[:min(in.seg, len(rest))], cidSize); !ok || !r.isApplication() {
			return false
		}
	}
	return true
}

// share gives one datagram to pion, to Receive, or to both.
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

// isApplication reports whether a record cannot be of a handshake.
func (r rawRecord) isApplication() bool {
	return r.typ == typeApplication || r.typ == typeCID && r.number() >= controlBase
}

// mayRepeat reports whether a record may be a repeated message of the peer's
// last flight, upon which pion repeats its own. What could end the handshake
// does not pass, as it is not authenticated: no alert and no ClientHello.
func (r rawRecord) mayRepeat() bool {
	switch {
	case r.epoch() == 0:
		return r.typ == typeHandshake && len(r.body) > 0 && r.body[0] != clientHello
	case r.typ == typeHandshake, r.typ == typeCID:
		return len(r.whole) <= maxFinished && !r.isApplication()
	}
	return false
}
