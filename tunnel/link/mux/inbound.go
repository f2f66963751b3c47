package mux

import "io"

const (
	// smallRead is how much is read at once while little arrives.
	smallRead = 4 << 10
	// quietReads is how many consecutive reads must need less before less is read at once: the last
	// record of a batch may be a small one.
	quietReads = 2
	// emptyReads is how many consecutive reads may return nothing.
	emptyReads = 100
)

// moreConn is a connection that can be read without blocking.
type moreConn interface {
	// ReadNow reads what is available; neither bytes nor an error means nothing yet.
	ReadNow(b []byte) (int, error)
}

// inbound reads as many records from the connection as are available. In bulk transfers it reads
// into memory that streams keep as it is; while little arrives it holds only a few kilobytes.
type inbound struct {
	conn  io.Reader
	more  moreConn // conn, or nil
	small [smallRead]byte
	mem   []byte // nil, or what was read into last, from memory
	size  int    // of what is read into: smallRead, chunkSize or bulkSize
	quiet int    // reads in a row that would have done with less
	rest  []byte // of small or mem: read and not yet taken
	err   error  // to be returned after rest
}

func newInbound(conn io.Reader) inbound {
	more, _ := conn.(moreConn)
	return inbound{conn: conn, more: more, size: smallRead}
}

// Buffered returns how many bytes can be taken without reading.
func (in *inbound) Buffered() int { return len(in.rest) }

// fill waits for data and reads it. It is called with rest empty.
func (in *inbound) fill() error {
	if in.err != nil {
		return in.err
	}
	if len(in.mem) != in.size {
		in.Close()
		if in.size > smallRead {
			in.mem = takeMemory(in.size)
		}
	}
	buf := in.mem
	if buf == nil {
		buf = in.small[:]
	}
	for range emptyReads {
		n, err := in.conn.Read(buf)
		if n == 0 && err == nil {
			continue
		}
		// An incomplete record ends a batch; what follows is read separately.
		for more := n; more == chunkSize && n < len(buf) && in.more != nil && err == nil; n += more {
			more, err = in.more.ReadNow(buf[n:])
		}
		if n == 0 {
			return err
		}
		in.rest, in.err = buf[:n], err
		in.fit(n)
		return nil
	}
	return io.ErrNoProgress
}

// fit chooses how much to read next time, after a read of n bytes.
func (in *inbound) fit(n int) {
	size := smallRead
	switch {
	case n >= chunkSize:
		size = bulkSize
	case n >= smallRead:
		size = chunkSize
	}
	if size >= in.size {
		in.size, in.quiet = size, 0
	} else if in.quiet++; in.quiet == quietReads {
		in.size, in.quiet = size, 0
	}
}

// Next returns between one and most bytes, valid until the next call.
func (in *inbound) Next(most int) ([]byte, error) {
	if len(in.rest) == 0 {
		if err := in.fill(); err != nil {
			return nil, err
		}
	}
	n := min(most, len(in.rest))
	b := in.rest[:n]
	in.rest = in.rest[n:]
	return b, nil
}

// Read implements io.Reader.
func (in *inbound) Read(b []byte) (int, error) {
	part, err := in.Next(len(b))
	return copy(b, part), err
}

// Discard drops n bytes.
func (in *inbound) Discard(n int) error {
	for n > 0 {
		part, err := in.Next(n)
		if err != nil {
			return err
		}
		n -= len(part)
	}
	return nil
}

// Keep returns the slice that Next returned last as a separate chunk, if it fills most of one;
// otherwise the caller should copy it.
func (in *inbound) Keep(end []byte) (kept chunk, ok bool) {
	if in.mem == nil || len(in.rest) > 0 || len(end) < len(in.mem)*3/4 {
		return chunk{}, false
	}
	to := len(in.mem) - cap(end) + len(end)
	kept = chunk{in.mem, to - len(end), to}
	in.mem = nil
	return kept, true
}

// Close releases its memory.
func (in *inbound) Close() {
	if in.mem != nil {
		giveMemory(in.mem)
		in.mem = nil
	}
}
