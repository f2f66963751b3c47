package inspect

import (
	"encoding/binary"
	"errors"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frameHead is the length of a frame's head: RFC 9113 §4.1.
const frameHead = 9

// maxTable limits the dynamic table that a peer may fill, in bytes (RFC 7541 §4.2).
const maxTable = 64 << 10

var errFrames = errors.New("it is not HTTP/2 as the inspector reads it")

// fields are the header fields of one block, in order.
type fields []hpack.HeaderField

// get returns the first value of a field; names are in lower case.
func (f fields) get(name string) string {
	for _, h := range f {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// frameEar receives what frames finds. It belongs to its goroutine.
type frameEar interface {
	// headers receives a block, which is valid until it returns; end says whether the stream's
	// direction has ended.
	headers(stream uint32, list fields, end bool)
	data(stream uint32, b []byte)
	end(stream uint32)
	// reset is the end of the stream in both directions.
	reset(stream uint32)
	// lost says that nothing more will be found, and why.
	lost(why error)
}

// frames finds what is sent on the streams of one direction of an HTTP/2 connection (RFC 9113). It
// processes the bytes as they arrive and copies only fields.
type frames struct {
	to      frameEar
	preface string // what is still to come of the client's
	decoder *hpack.Decoder
	deaf    bool // lost

	head   [frameHead]byte
	had    int // of head
	left   int // of the frame's payload
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
	pad    bool // the first byte of the payload is the length of its padding
	skip   int  // bytes before the content
	body   int  // bytes of content still to come, once pad is read

	list    fields // of the block that is being read
	size    int    // of list
	block   uint32 // the stream whose block has not ended; zero: none
	closing bool   // that block ends the stream's direction
}

func newFrames(to frameEar, preface string) *frames {
	f := &frames{to: to, preface: preface}
	f.decoder = hpack.NewDecoder(4096, f.field)
	f.decoder.SetAllowedMaxDynamicTableSize(maxTable)
	f.decoder.SetMaxStringLength(maxHead)
	return f
}

// feed processes the next bytes.
func (f *frames) feed(b []byte) {
	for len(b) > 0 && !f.deaf {
		switch {
		case f.preface != "":
			n := min(len(b), len(f.preface))
			if string(b[:n]) != f.preface[:n] {
				f.lose()
				return
			}
			f.preface, b = f.preface[n:], b[n:]
		case f.had < frameHead:
			n := copy(f.head[f.had:], b)
			f.had, b = f.had+n, b[n:]
			if f.had == frameHead {
				f.begin()
			}
		default:
			n := min(len(b), f.left)
			f.left -= n
			f.payload(b[:n])
			b = b[n:]
		}
		if f.had == frameHead && f.left == 0 && !f.deaf {
			f.finish()
		}
	}
}

// begin reads a frame's head.
func (f *frames) begin() {
	f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	f.kind, f.flags = http2.FrameType(f.head[3]), http2.Flags(f.head[4])
	f.stream = binary.BigEndian.Uint32(f.head[5:]) & (1<<31 - 1)
	f.pad, f.skip, f.body = false, 0, f.left
	if (f.block != 0) != (f.kind == http2.FrameContinuation) || f.block != 0 && f.block != f.stream {
		f.lose() // nothing comes between the parts of a block: RFC 9113 §6.10
		return
	}
	switch f.kind {
	case http2.FrameData:
		f.pad = f.flags.Has(http2.FlagDataPadded)
	case http2.FrameHeaders:
		f.pad = f.flags.Has(http2.FlagHeadersPadded)
		if f.flags.Has(http2.FlagHeadersPriority) {
			f.skip = 5
			f.body -= f.skip
		}
		f.block, f.closing = f.stream, f.flags.Has(http2.FlagHeadersEndStream)
	case http2.FramePushPromise: // the edge allows none
		f.lose()
		return
	}
	if f.body < 0 || f.pad && f.left == 0 {
		f.lose()
	}
}

// payload processes the next bytes of a frame's payload.
func (f *frames) payload(b []byte) {
	if f.pad && len(b) > 0 {
		f.pad = false
		if f.body -= 1 + int(b[0]); f.body < 0 {
			f.lose()
			return
		}
		b = b[1:]
	}
	n := min(len(b), f.skip)
	f.skip, b = f.skip-n, b[n:]
	n = min(len(b), f.body)
	f.body, b = f.body-n, b[:n] // what follows is padding
	if len(b) == 0 {
		return
	}
	switch f.kind {
	case http2.FrameData:
		f.to.data(f.stream, b)
	case http2.FrameHeaders, http2.FrameContinuation:
		if _, err := f.decoder.Write(b); err != nil || f.size > maxHead {
			f.lose()
		}
	}
}

// field processes a field of the block that is being read.
func (f *frames) field(h hpack.HeaderField) {
	if f.size += int(h.Size()); f.size <= maxHead {
		f.list = append(f.list, h)
	}
}

// finish ends a frame.
func (f *frames) finish() {
	f.had = 0
	switch f.kind {
	case http2.FrameData:
		if f.flags.Has(http2.FlagDataEndStream) {
			f.to.end(f.stream)
		}
	case http2.FrameHeaders, http2.FrameContinuation:
		if !f.flags.Has(http2.FlagHeadersEndHeaders) { // the same flag in both
			return
		}
		if f.decoder.Close() != nil || f.size > maxHead {
			f.lose()
			return
		}
		f.to.headers(f.block, f.list, f.closing)
		clear(f.list)
		f.list, f.size, f.block = f.list[:0], 0, 0
	case http2.FrameRSTStream:
		f.to.reset(f.stream)
	}
}

// lose gives up on the direction.
func (f *frames) lose() {
	f.deaf, f.list = true, nil
	f.to.lost(errFrames)
}
