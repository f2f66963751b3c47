package inspect

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"
)

// Limits for what is kept of one WebSocket: of its newest messages together, and of each.
const (
	maxTalk     = 1 << 20 // bytes of all of them together, and at most an eighth of the memory
	maxMessages = 1000
	maxMessage  = 64 << 10
	// messageCost is how much memory an empty message counts for.
	messageCost = 128
	// inflatedMost is how far a compressed message is decompressed, and talkWindow how far back the
	// next one may refer (RFC 7692 §7.2).
	inflatedMost = 1 << 20
	talkWindow   = 32 << 10
	// inflateCost is the memory needed to decompress messages in one direction.
	inflateCost = 96 << 10
)

// Kinds of a SocketMessage.
const (
	messageText   = "text"
	messageBinary = "binary"
	messageClose  = "close"
)

// SocketMessage is one message of a WebSocket, or its end.
type SocketMessage struct {
	// From says who sent it: visitor or origin.
	From string    `json:"from"`
	Time time.Time `json:"time"`
	Type string    `json:"type"` // text, binary or close
	// Size is its size on the wire in bytes, without framing.
	Size int64 `json:"size"`
	// Text is the content, or Base64 if that is not text. For a close, it is the code and reason.
	Text   string `json:"text,omitempty"`
	Base64 string `json:"base64,omitempty"`
	// Truncated is set if the message was longer than what was kept.
	Truncated bool `json:"truncated,omitempty"`
	// Unread is set if it was compressed and could not be decompressed.
	Unread bool `json:"unread,omitempty"`
}

// said is a message as it is stored.
type said struct {
	visitor   bool
	at        time.Time
	kind      string
	size      int64
	data      []byte
	truncated bool
	unread    bool
}

func (m said) cost() int { return messageCost + len(m.data) }

// talk hears the messages of one WebSocket (RFC 6455). Each direction belongs to one
// goroutine.
type talk struct{ visitor, origin talker }

// newTalk returns a talk for the WebSocket that e has become; nil if it has become something else.
func newTalk(e *entry, response []byte) *talk {
	_, lines, _ := bytes.Cut(response, []byte("\n"))
	if !strings.EqualFold(field(lines, "Upgrade"), "websocket") {
		return nil
	}
	t := &talk{visitor: talker{entry: e, visitor: true}, origin: talker{entry: e}}
	if extension := strings.ToLower(field(lines, "Sec-WebSocket-Extensions")); strings.HasPrefix(extension, "permessage-deflate") {
		t.visitor.inflate = &inflater{alone: strings.Contains(extension, "client_no_context_takeover")}
		t.origin.inflate = &inflater{alone: strings.Contains(extension, "server_no_context_takeover")}
	}
	return t
}

// talker hears one direction. It processes the bytes as they arrive.
type talker struct {
	entry   *entry
	visitor bool
	inflate *inflater // nil: nothing is compressed
	deaf    bool      // what comes is no WebSocket

	head   [14]byte // of a frame: two bytes, a longer length, and a mask's key
	had    int
	key    [4]byte // of the mask; all zero without one
	at     int     // of the payload, for the mask
	left   int64   // of the payload
	opcode byte
	final  bool

	begun   bool // a message whose last frame has not ended
	message said
	packed  bool   // it is compressed
	control []byte // of a control frame, which may come between a message's
}

// feed processes the next bytes.
func (t *talker) feed(b []byte) {
	for len(b) > 0 && !t.deaf {
		if need := t.headSize(); t.had < need {
			n := copy(t.head[t.had:need], b)
			t.had, b = t.had+n, b[n:]
			if t.had < t.headSize() {
				continue
			}
			t.begin()
		}
		n := int(min(int64(len(b)), t.left))
		t.payload(b[:n])
		t.left, b = t.left-int64(n), b[n:]
		if t.left == 0 && !t.deaf {
			t.end()
			t.had = 0
		}
	}
}

// headSize returns the length of the frame's head, as far as it is known.
func (t *talker) headSize() int {
	if t.had < 2 {
		return 2
	}
	size := 2
	switch t.head[1] & 0x7f {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	if t.head[1]&0x80 != 0 {
		size += 4
	}
	return size
}

// begin reads a frame's head.
func (t *talker) begin() {
	first, length, rest := t.head[0], int64(t.head[1]&0x7f), t.head[2:]
	switch length {
	case 126:
		length, rest = int64(binary.BigEndian.Uint16(rest)), rest[2:]
	case 127:
		length, rest = int64(binary.BigEndian.Uint64(rest)&(1<<63-1)), rest[8:]
	}
	if t.key = [4]byte{}; t.head[1]&0x80 != 0 {
		copy(t.key[:], rest)
	}
	t.at, t.left = 0, length
	t.final, t.opcode = first&0x80 != 0, first&0x0f
	packed := first&0x40 != 0
	switch {
	case first&0x30 != 0, packed && t.inflate == nil,
		t.opcode > 10, t.opcode > 2 && t.opcode < 8,
		t.opcode >= 8 && (!t.final || length > 125),
		t.opcode < 8 && (t.opcode == 0) != t.begun:
		t.deaf = true
	case t.opcode == 1, t.opcode == 2:
		t.begun, t.packed = true, packed
		t.message = said{visitor: t.visitor, at: time.Now(), kind: messageText}
		if t.opcode == 2 {
			t.message.kind = messageBinary
		}
	case t.opcode >= 8:
		t.control = t.control[:0]
	}
}

// payload processes the next bytes of a frame's payload.
func (t *talker) payload(b []byte) {
	if t.deaf || len(b) == 0 {
		return
	}
	at := t.at
	t.at += len(b)
	into := &t.control
	if t.opcode < 8 {
		into = &t.message.data
		t.message.size += int64(len(b))
		b = t.keep(b)
	}
	from := len(*into)
	*into = append(*into, b...)
	if t.key != [4]byte{} {
		for i := range b {
			(*into)[from+i] ^= t.key[(at+i)&3]
		}
	}
}

// keep returns what is kept of the next bytes of a message.
func (t *talker) keep(b []byte) []byte {
	m := &t.message
	if m.truncated {
		return nil
	}
	room := maxMessage - len(m.data)
	if len(m.data)+len(b) > smallBody && !t.entry.ins.pace.take(len(b)) {
		room = max(smallBody-len(m.data), 0)
	}
	m.truncated = len(b) > room
	b = b[:min(len(b), room)]
	if !t.entry.grow(len(b)) {
		m.truncated = true
		return nil
	}
	return b
}

// end ends a frame.
func (t *talker) end() {
	var m said
	switch {
	case t.opcode == 8:
		m = said{visitor: t.visitor, at: time.Now(), kind: messageClose, size: int64(len(t.control)), data: bytes.Clone(t.control)}
	case t.opcode < 8 && t.final:
		m = t.message
		t.message, t.begun = said{}, false
		t.entry.give(len(m.data)) // it is counted as a whole message
		if t.packed {
			m.data, m.unread = t.inflate.undo(t.entry, m.data, m.truncated)
			m.truncated = m.truncated || len(m.data) > maxMessage
			m.data = m.data[:min(len(m.data), maxMessage)]
		}
		m.data = bytes.Clone(m.data) // without room to grow
	default:
		return
	}
	if !t.entry.say(m) {
		t.deaf, t.inflate, t.control = true, nil, nil
	}
}

// inflater decompresses the messages in one direction (RFC 7692).
type inflater struct {
	alone  bool // no message refers to one before
	lost   bool // what messages refer to was not kept
	held   bool // its memory is counted
	reader io.ReadCloser
	window []byte
}

// undo returns the decompressed data, or all that is known and unread. If data was cut, nothing
// that refers to it can be decompressed.
func (f *inflater) undo(e *entry, data []byte, cut bool) (plain []byte, unread bool) {
	if !f.held {
		e.mu.Lock()
		f.held = e.hold(inflateCost)
		e.mu.Unlock()
	}
	if cut || f.lost || !f.held {
		f.lost = !f.alone
		return nil, true
	}
	// The end of the stream, which senders omit, and an empty last block for the reader.
	in := io.MultiReader(bytes.NewReader(data), strings.NewReader("\x00\x00\xff\xff\x01\x00\x00\xff\xff"))
	if f.reader == nil {
		f.reader = flate.NewReaderDict(in, f.window)
	} else if f.reader.(flate.Resetter).Reset(in, f.window) != nil {
		f.lost = true
		return nil, true
	}
	// A few bytes can expand to very many, so this is paced in the same way as copying.
	most, paced := blockSize, e.ins.pace.take(blockSize)
	if paced {
		most = inflatedMost
	}
	plain, err := io.ReadAll(io.LimitReader(f.reader, int64(most)+1))
	if paced {
		e.ins.pace.charge(len(plain) - blockSize)
	}
	if err != nil || len(plain) > most {
		f.lost = !f.alone
		return nil, true
	}
	if !f.alone {
		f.window = append(f.window, plain[max(0, len(plain)-talkWindow):]...)
		if over := len(f.window) - talkWindow; over > 0 {
			f.window = append(f.window[:0], f.window[over:]...)
		}
	}
	return plain, false
}

// grow reports whether n bytes of a message may be kept until it ends.
func (e *entry) grow(n int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hold(n)
}

// give undoes grow.
func (e *entry) give(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.giveLocked(n)
}

func (e *entry) giveLocked(n int) {
	if !e.gone {
		e.held -= n
		e.ins.used.Add(-int64(n))
	}
}

// say stores a message; the WebSocket's oldest ones make room for it. It reports whether more will
// be kept.
func (e *entry) say(m said) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return false
	}
	n, most := 0, min(maxTalk, e.ins.limits.Memory/8)
	for n < len(e.messages) && (len(e.messages)-n >= maxMessages || e.talked+m.cost() > most) {
		cost := e.messages[n].cost()
		e.talked -= cost
		e.giveLocked(cost)
		n++
	}
	if n > 0 {
		e.unheard += n
		kept := copy(e.messages, e.messages[n:])
		clear(e.messages[kept:])
		e.messages = e.messages[:kept]
	}
	if e.talked+m.cost() > most || !e.hold(m.cost()) {
		e.unheard++
		return true
	}
	e.talked += m.cost()
	e.messages = append(e.messages, m)
	return true
}

// view returns the message in a form that a person can read.
func (m said) view() SocketMessage {
	v := SocketMessage{From: "origin", Time: m.at.UTC(), Type: m.kind, Size: m.size, Truncated: m.truncated, Unread: m.unread}
	if m.visitor {
		v.From = "visitor"
	}
	if m.kind == messageClose {
		v.Text = closing(m.data)
		return v
	}
	if text, ok := asText(m.data, m.truncated); ok {
		v.Text = text
	} else {
		v.Base64 = base64.StdEncoding.EncodeToString(m.data)
	}
	return v
}

// closing returns the content of a close frame: RFC 6455 §5.5.1.
func closing(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	code := binary.BigEndian.Uint16(b)
	return strings.TrimSpace(strconv.Itoa(int(code)) + " " + clean(b[2:]))
}
