package inspect

import (
	"bytes"
	"errors"
	"strconv"
)

// maxHead is the size of the largest message head that is understood, in bytes.
const maxHead = 64 << 10

// bodyKind says how a body ends (RFC 9112 §6.3).
type bodyKind int

const (
	noBody bodyKind = iota
	lengthBody
	chunkedBody
	closeBody // with the connection
	rawBody   // no HTTP any more: an upgraded connection, or one that never was
)

// head is what framing needs to know about a message's head.
type head struct {
	first            []byte // the request line or the status line
	length           int64  // Content-Length; -1 if absent
	chunked, upgrade bool
	method           string
	status           int
}

var errHead = errors.New("it is not HTTP/1.1 as the inspector reads it")

// parseHead parses the head of a request or a response; raw ends with an empty line.
func parseHead(raw []byte, response bool) (head, error) {
	h := head{length: -1}
	line, rest, _ := bytes.Cut(raw, []byte("\n"))
	h.first = bytes.TrimSuffix(line, []byte("\r"))
	if response {
		if !bytes.HasPrefix(h.first, []byte("HTTP/1.")) || len(h.first) < 12 || h.first[8] != ' ' {
			return h, errHead
		}
		n, err := strconv.Atoi(string(h.first[9:12]))
		if err != nil || n < 100 {
			return h, errHead
		}
		h.status = n
	} else {
		method, after, ok := bytes.Cut(h.first, []byte(" "))
		if !ok || len(method) > 32 || !token(string(method)) || !bytes.Contains(after, []byte(" HTTP/1.")) {
			return h, errHead
		}
		h.method = methodName(method)
	}
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		value = bytes.TrimSpace(value)
		switch len(name) {
		case len("Content-Length"):
			if bytes.EqualFold(name, []byte("Content-Length")) {
				n, err := strconv.ParseInt(string(value), 10, 64)
				if err != nil || n < 0 || h.length >= 0 && h.length != n {
					return h, errHead
				}
				h.length = n
			}
		case len("Transfer-Encoding"):
			if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
				h.chunked = len(value) >= 7 && bytes.EqualFold(value[len(value)-7:], []byte("chunked"))
			}
		case len("Upgrade"):
			if bytes.EqualFold(name, []byte("Upgrade")) {
				h.upgrade = true
			}
		}
	}
	return h, nil
}

// methodName returns string(b), without allocating for common methods.
func methodName(b []byte) string {
	for _, name := range [...]string{"GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		if string(b) == name {
			return name
		}
	}
	return string(b)
}

// body returns how the body of a message with this head ends, apart from what its request
// determines.
func (h head) body(response bool) (bodyKind, int64) {
	switch {
	case h.chunked:
		return chunkedBody, 0
	case h.length > 0:
		return lengthBody, h.length
	case h.length == 0 || !response:
		return noBody, 0
	}
	return closeBody, 0
}

// listener receives what a framer finds. It belongs to the framer's goroutine.
type listener interface {
	// message receives a head and returns how its body ends.
	message(raw []byte, h head) (bodyKind, int64)
	body(b []byte)
	end()
	// lost says that no more messages will be found, and why.
	lost(why error)
}

type frameState int

const (
	inHead frameState = iota
	inLength
	inChunkLine
	inChunk
	inChunkEnd
	inTrailer
	inClose
	inRaw
	inNothing // lost
)

// framer finds the messages in one direction of a connection. It processes the bytes as they arrive
// and copies only heads.
type framer struct {
	response bool
	to       listener
	state    frameState
	buf      []byte // of a head, a chunk's line or a trailer's line
	left     int64  // of the body or the chunk
	trailer  int    // bytes of trailers so far
}

// feed processes the next bytes.
func (f *framer) feed(b []byte) {
	for len(b) > 0 {
		switch f.state {
		case inHead:
			b = f.feedHead(b)
		case inLength, inChunk:
			n := min(int64(len(b)), f.left)
			f.to.body(b[:n])
			b = b[n:]
			if f.left -= n; f.left == 0 {
				if f.state == inChunk {
					f.state = inChunkEnd
				} else {
					f.finish()
				}
			}
		case inChunkLine, inChunkEnd, inTrailer:
			b = f.feedLine(b)
		case inClose, inRaw:
			f.to.body(b)
			return
		case inNothing:
			return
		}
	}
}

func (f *framer) finish() {
	f.to.end()
	f.state = inHead
}

func (f *framer) lose(err error) []byte {
	f.state, f.buf = inNothing, nil
	f.to.lost(err)
	return nil
}

func (f *framer) feedHead(b []byte) []byte {
	if len(f.buf) == 0 {
		b = bytes.TrimLeft(b, "\r\n") // RFC 9112 §2.2
		if len(b) == 0 {
			return nil
		}
	}
	if len(f.buf) == 0 {
		if end := headEnd(b[:min(len(b), maxHead)]); end >= 0 { // the whole of it, as nearly always
			return f.takeHead(bytes.Clone(b[:end]), b[end:])
		}
	}
	// The end may be split across two reads.
	from := max(len(f.buf)-3, 0)
	had := len(f.buf)
	take := min(len(b), maxHead-had)
	f.buf = append(f.buf, b[:take]...)
	end := headEnd(f.buf[from:])
	if end < 0 {
		if len(f.buf) >= maxHead {
			return f.lose(errHead)
		}
		if len(f.buf) >= 16 && had < 16 && !plausible(f.buf, f.response) {
			return f.lose(errHead)
		}
		return nil
	}
	end += from
	raw := f.buf[:end:end]
	f.buf = nil // raw is the listener's now
	return f.takeHead(raw, b[end-had:])
}

// takeHead passes a head to the listener, which then owns it, and returns what follows.
func (f *framer) takeHead(raw, rest []byte) []byte {
	h, err := parseHead(raw, f.response)
	if err != nil {
		return f.lose(err)
	}
	kind, length := f.to.message(raw, h)
	if f.state != inHead { // the listener has changed it
		return rest
	}
	switch kind {
	case noBody:
		f.finish()
	case lengthBody:
		f.state, f.left = inLength, length
	case chunkedBody:
		f.state = inChunkLine
	case closeBody:
		f.state = inClose
	case rawBody:
		f.state = inRaw
	}
	return rest
}

// headEnd returns where the empty line after a head ends, or -1.
func headEnd(b []byte) int {
	for from := 0; ; {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return -1
		}
		i += from + 1
		switch {
		case i < len(b) && b[i] == '\n':
			return i + 1
		case i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n':
			return i + 2
		}
		from = i
	}
}

// plausible reports whether b may be the beginning of a message.
func plausible(b []byte, response bool) bool {
	if response {
		return bytes.HasPrefix(b, []byte("HTTP/1."))
	}
	for _, c := range b {
		if c == ' ' {
			return true
		}
		if c < '!' || c > '~' {
			return false
		}
	}
	return len(b) <= 32
}

// feedLine processes the lines around chunks (RFC 9112 §7.1).
func (f *framer) feedLine(b []byte) []byte {
	before, after, ok := bytes.Cut(b, []byte{'\n'})
	if !ok {
		if len(f.buf)+len(b) > 4096 {
			return f.lose(errHead)
		}
		f.buf = append(f.buf, b...)
		return nil
	}
	line := before
	if len(f.buf) > 0 {
		line = append(f.buf, line...)
		f.buf = f.buf[:0]
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	rest := after
	switch f.state {
	case inChunkEnd:
		if len(line) != 0 {
			return f.lose(errHead)
		}
		f.state = inChunkLine
	case inChunkLine:
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseInt(string(bytes.TrimSpace(size)), 16, 64)
		if err != nil || n < 0 {
			return f.lose(errHead)
		}
		if n == 0 {
			f.state, f.trailer = inTrailer, 0
		} else {
			f.state, f.left = inChunk, n
		}
	case inTrailer:
		if len(line) == 0 {
			f.buf = nil
			f.finish()
		} else if f.trailer += len(line); f.trailer > maxHead {
			return f.lose(errHead)
		}
	}
	return rest
}

// closed tells the framer that its direction has ended.
func (f *framer) closed() {
	switch f.state {
	case inClose, inRaw:
		f.to.end()
	case inHead:
		if len(f.buf) == 0 {
			return
		}
		fallthrough
	default:
		if f.state != inNothing {
			f.to.lost(errCut)
		}
	}
	f.state, f.buf = inNothing, nil
}

var errCut = errors.New("the connection ended in the middle of a message")
