package record

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// Alert descriptions (RFC 5246 §7.2).
const (
	alertCloseNotify   = 0
	alertInternalError = 80
	alertFatal         = 2 // a level
)

// Packet is one decrypted record of application data.
type Packet struct {
	// Number is the record's number, counted as in Send. The records of a peer that is not adit
	// start below 2^40 and keep their own numbers.
	Number uint64
	// Data is valid until the next Receive.
	Data []byte
	// Time is when the record arrived from the network.
	Time time.Time
}

// Receive waits for at least one record of application data. It decrypts as many as are available
// and into has room for.
func (c *Conn) Receive(into []Packet) (n int, err error) {
	if !c.holding {
		c.opening.Lock()
	}
	defer func() {
		if c.holding = n > 0; !c.holding { // else what it returns is still in use
			c.opening.Unlock()
		}
	}()
	c.releaseHeld()
	if len(into) == 0 {
		return 0, nil
	}
	for {
		if n == 0 && c.isEnding() {
			c.endByPeer()
			return 0, c.err
		}
		if c.current == nil {
			if n > 0 {
				select {
				case in := <-c.queue:
					c.take(in)
					continue
				default:
					return n, nil
				}
			}
			in, err := c.await()
			if err != nil {
				return 0, err
			}
			c.take(in)
			continue
		}
		n = c.openInto(into, n)
		if n == len(into) || n > 0 && c.isEnding() {
			return n, nil
		}
		if n == 0 && c.Err() != nil {
			return 0, c.err
		}
	}
}

// await waits for a buffer, and lets others open records in the meantime.
func (c *Conn) await() (*inbound, error) {
	select {
	case in := <-c.queue:
		return in, nil
	default:
	}
	c.opening.Unlock()
	defer c.opening.Lock()
	select {
	case in := <-c.queue:
		return in, nil
	case <-c.done:
		return nil, c.err
	}
}

// releaseHeld gives back the buffers of the packets returned before, except for one that is not
// finished.
func (c *Conn) releaseHeld() {
	for i, in := range c.held {
		c.held[i] = nil
		if in != c.current {
			in.release()
		}
	}
	c.held = c.held[:0]
	if c.current != nil {
		c.held = append(c.held, c.current)
	}
}

func (c *Conn) take(in *inbound) {
	c.queued.Add(-int64(len(in.buf)))
	c.current = in
	c.held = append(c.held, in)
}

// openInto opens the records of the current buffer until into is full or the buffer is finished.
func (c *Conn) openInto(into []Packet, n int) int {
	in := c.current
	for {
		if len(c.datagram) == 0 {
			if len(in.data) == 0 {
				c.current = nil
				return n
			}
			c.datagram = in.next()
		}
		for len(c.datagram) > 0 {
			if n == len(into) {
				return n
			}
			r, rest, ok := parse(c.datagram, len(c.localCID))
			c.datagram = rest
			if !ok {
				c.datagram = nil
				break
			}
			if data, number, ok := c.accept(r, in); ok {
				into[n] = Packet{Number: number, Data: data, Time: in.at}
				n++
			}
			if c.isEnding() {
				return n
			}
		}
	}
}

// accept checks and opens one record. It returns application data; everything else is handled here.
// Records that are not authentic change nothing.
func (c *Conn) accept(r rawRecord, in *inbound) (data []byte, number uint64, ok bool) {
	if r.epoch() != 1 || !bytes.Equal(r.cid, c.localCID) {
		return nil, 0, false
	}
	w, number := &c.high, r.number()
	if number < base {
		w = &c.low
	}
	if !w.fresh(number) {
		return nil, 0, false
	}
	plain, typ, ok := c.in.open(r)
	if !ok {
		if c.forged++; c.forged >= maxForged {
			c.finish(ErrExhausted)
		}
		return nil, 0, false
	}
	newest := w.mark(number)
	if d := in.src.detour; d != nil && !d.proven.Load() {
		c.adopt(in.src)
	}
	c.provePath(in)
	if newest && len(c.localCID) > 0 {
		c.noticePath(in)
	}
	switch typ {
	case typeApplication:
		if f := c.feed.Load(); f != nil {
			f.shut() // the peer has our Finished, nothing will be repeated
			c.feed.Store(nil)
			if c.listener != nil {
				c.listener.settled(c)
			}
		}
		if len(c.localCID) > 0 && len(plain) > 0 && plain[0] >= firstReserved {
			c.pathMessage(plain, in)
			return nil, 0, false
		}
		if number >= base {
			number -= base
		}
		return plain[:len(plain):len(plain)], number, true
	case typeAlert:
		c.alert(plain, number)
	}
	return nil, 0, false
}

// alert records that the peer ends the session; warnings other than close_notify are ignored. The
// end takes effect once everything before it has been returned and Receive is called again: the
// last packets may give the reason.
func (c *Conn) alert(plain []byte, number uint64) {
	switch {
	case len(plain) != 2:
	case number == farewellNumber:
		c.ending = ErrForgotten
	case plain[1] == alertCloseNotify:
		c.ending = ErrPeerClosed
	case plain[0] == alertFatal:
		c.ending = &AlertError{plain[1]}
	}
}

// isEnding reports whether the peer has ended the session and this side has not yet.
func (c *Conn) isEnding() bool { return c.ending != nil }

func (c *Conn) endByPeer() {
	if errors.Is(c.ending, ErrPeerClosed) {
		c.sendAlert(1, alertCloseNotify)
	}
	c.finish(c.ending)
}

func (c *Conn) String() string {
	return fmt.Sprintf("dtls session %v to %v", c.LocalAddr(), c.RemoteAddr())
}
